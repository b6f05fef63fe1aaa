"""How much the tests of the core notice: mutation testing and its figures."""
