"""Long random runs of the runtime against its specification.

`python -m fuzz` has the commands: campaigns over processes or a cluster, the fast
seeded driver, the stateful machine, situations that a run must meet, seeded bugs that
must be caught, and the replay of failures, whose files stay in `regressions`. The
folder is used from a checkout and is not part of the wheel.

    world, operations, engine    one door to all checks, and what goes through it
    driver, machine              who chooses: a seed, or hypothesis
    schedules                    in which order a device does the work of a step
    situations, moments          what a run has met
    bugs, planted_*              what must be caught, and by which clause
    targets, campaign, files     what can be run, for how long, and what it leaves
    refinement and the rest      the specification's side (`spec`)
"""
