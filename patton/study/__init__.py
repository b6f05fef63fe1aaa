"""The paper's evaluation, rebuilt: runs, the experiments made of them, a report.

`experiments` say what to run and what it shows, `runs` serve a workload on one system
and time a sample of its steps, `work` divides runs over processes or a cluster and
keeps their results, `report` shows figures beside the paper's.
"""
