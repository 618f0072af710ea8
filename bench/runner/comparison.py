"""The runs of a folder of results, side by side: pure functions."""

import figures


def comparisons(plan, runs):
    """The runs by device and workload, in the plan's order: [(device, workload, {server: runs})]."""
    found = []
    for device in plan["devices"]:
        for workload in plan["workloads"]:
            by_server = {
                server: sorted((run for run in runs if (run["device"], run["workload"], run["server"])
                                == (device, workload, server)), key=lambda run: run["repetition"])
                for server in plan["servers"]
            }  # fmt: skip
            by_server = {server: own for server, own in by_server.items() if own}
            if by_server:
                found.append((device, workload, by_server))
    return found


def values(runs, key):
    return [run["figures"].get(key) for run in runs]


def scalar_figures(by_server):
    """The names of the figures that are one number, in the order in which they were computed."""
    names = {}
    for runs in by_server.values():
        for run in runs:
            names |= dict.fromkeys(name for name, value in run["figures"].items() if isinstance(value, (int, float)))
    return list(names)


def compare(by_server):
    """{figure: {server: its spread, with the spread of its ratio to the first server}}."""
    reference = next(iter(by_server))
    by_repetition = {run["repetition"]: run["figures"] for run in by_server[reference]}
    found = {}
    for key in scalar_figures(by_server):
        found[key] = {}
        for server, runs in by_server.items():
            spread = figures.spread(values(runs, key))
            if spread is None:
                continue
            pairs = [(run["figures"].get(key), by_repetition.get(run["repetition"], {}).get(key)) for run in runs]
            ratio = figures.ratios([own for own, _ in pairs], [other for _, other in pairs])
            found[key][server] = {**spread, "ratio": ratio if server != reference else None}
    return found


def throughput_ratios(sections):
    """Each server's throughput over the reference's of the same repetition, of all workloads and devices together:
    {server: [ratios]}. sections are those of comparisons()."""
    found = {}
    for _, _, by_server in sections:
        (_, reference), *others = by_server.items()
        base = {run["repetition"]: run["figures"]["mean_per_s"] for run in reference}
        for server, runs in others:
            pairs = [(run["figures"]["mean_per_s"], base.get(run["repetition"])) for run in runs]
            found.setdefault(server, []).extend(own / other for own, other in pairs if other)
    return found


def differs(of_servers, reference, server):
    """Whether, in every repetition, a server differs from the reference by more than this from itself."""
    noise, ratio = of_servers.get(reference), of_servers.get(server, {}).get("ratio")
    if not noise or not ratio or not noise["median"] or ratio["of"] < 2:
        return False
    return ratio["min"] > noise["max"] / noise["median"] or ratio["max"] < noise["min"] / noise["median"]
