"""Pictures of the memory map: from a runtime to rectangles, and from those to files."""
