"""Comparison of the runs of a folder of results: pure functions."""

from . import figures, result

# Source: simulation of equal servers with normally distributed figures. differs() reports a difference for 29 % of the
# figures with 2 repetitions, 10 % with 3, 3 % with 4.
MIN_REPETITIONS = 4


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
    """The names of the figures that are a single number, in the order of their computation."""
    names = {}
    for runs in by_server.values():
        for run in runs:
            names |= dict.fromkeys(name for name, value in run["figures"].items() if isinstance(value, (int, float)))
    return list(names)


def compare(by_server):
    """{figure: {server: its spread, and as "ratio" the spread of its ratio to the first server}}."""
    reference = next(iter(by_server))
    found = {}
    for key in scalar_figures(by_server):
        found[key] = {}
        for server, runs in by_server.items():
            spread = figures.spread(values(runs, key))
            if spread is None:
                continue
            of_each = list(ratios(by_server, server, key).values())
            # If the reference is 0 in some repetitions, the ratios of the others alone would flatter it.
            known = server != reference and None not in of_each
            found[key][server] = {**spread, "ratio": figures.spread(of_each) if known else None}
    return found


def ratios(by_server, server, key):
    """{repetition: a server's figure over the first server's} for repetitions that both have run. A ratio can be
    None, see figures.ratio()."""
    base = {run["repetition"]: run["figures"].get(key) for run in next(iter(by_server.values()))}
    return {run["repetition"]: figures.ratio(run["figures"].get(key), base[run["repetition"]])
            for run in by_server[server] if run["repetition"] in base}  # fmt: skip


def throughput_ratios(sections, max_steal_pct):
    """{server: [ratios of throughput]} over all workloads and devices. sections is a list of {server: runs}.
    Open loops are left out, since the plan sets their throughput, and so are noisy pairs."""
    found = {}
    for by_server in sections:
        reference, *others = by_server
        if by_server[reference][0]["arrivals_per_s"]:
            continue
        steal = {server: {run["repetition"]: run["figures"].get("cpu_steal_pct") or 0 for run in runs}
                 for server, runs in by_server.items()}  # fmt: skip
        for server in others:
            for repetition, ratio in ratios(by_server, server, "mean_per_s").items():
                pair = [steal[one].get(repetition, 0) for one in (reference, server)]
                if ratio is not None and result.is_quiet(pair, max_steal_pct):
                    found.setdefault(server, []).append(ratio)
    return found


def differs(of_servers, reference, server, min_repetitions=MIN_REPETITIONS):
    """Return whether each repetition's ratio lies outside of the noise, the reference's own spread around its median.
    False with fewer repetitions than min_repetitions."""
    own, noise = of_servers.get(server), of_servers.get(reference)
    ratio = own and own["ratio"]
    if not noise or not ratio or not noise["median"] or ratio["of"] < min_repetitions:
        return False
    return ratio["min"] > noise["max"] / noise["median"] or ratio["max"] < noise["min"] / noise["median"]
