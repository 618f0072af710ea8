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
    found = {}
    for key in scalar_figures(by_server):
        found[key] = {}
        for server, runs in by_server.items():
            spread = figures.spread(values(runs, key))
            if spread is None:
                continue
            ratio = figures.spread(ratios(by_server, server, key).values())
            found[key][server] = {**spread, "ratio": ratio if server != reference else None}
    return found


def ratios(by_server, server, key):
    """A server's figure over the first server's of the same repetition: {repetition: ratio, or None}."""
    base = {run["repetition"]: run["figures"].get(key) for run in next(iter(by_server.values()))}
    return {run["repetition"]: figures.ratio(run["figures"].get(key), base.get(run["repetition"]))
            for run in by_server[server]}  # fmt: skip


def throughput_ratios(sections):
    """The ratios of throughput of all workloads and devices together: {server: [ratios]}. sections are {server: runs}
    each; an open loop is left out, where the throughput is what the plan asks for."""
    found = {}
    for by_server in sections:
        reference, *others = by_server
        if by_server[reference][0]["arrivals_per_s"]:
            continue
        for server in others:
            known = [one for one in ratios(by_server, server, "mean_per_s").values() if one is not None]
            found.setdefault(server, []).extend(known)
    return found


def differs(of_servers, reference, server):
    """Whether, in every repetition, a server differs from the reference by more than this from itself."""
    own, noise = of_servers.get(server), of_servers.get(reference)
    ratio = own and own["ratio"]
    if not noise or not ratio or not noise["median"] or ratio["of"] < max(2, own["of"]):
        return False
    return ratio["min"] > noise["max"] / noise["median"] or ratio["max"] < noise["min"] / noise["median"]
