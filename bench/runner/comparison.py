"""The runs of a folder of results, side by side: pure functions."""

import figures
import result

# Of equal servers whose figures are normally distributed, a figure is found to differ in 29 % with 2 repetitions, 10 %
# with 3, 3 % with 4 (simulated).
LEAST_REPETITIONS = 4


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
            of_each = list(ratios(by_server, server, key).values())
            # Where it is known of some only, as the reference is 0 in others, those would be the ones that flatter it.
            known = server != reference and None not in of_each
            found[key][server] = {**spread, "ratio": figures.spread(of_each) if known else None}
    return found


def ratios(by_server, server, key):
    """A server's figure over the first server's of the same repetition, where both have run: {repetition: ratio, or
    None}."""
    base = {run["repetition"]: run["figures"].get(key) for run in next(iter(by_server.values()))}
    return {run["repetition"]: figures.ratio(run["figures"].get(key), base[run["repetition"]])
            for run in by_server[server] if run["repetition"] in base}  # fmt: skip


def throughput_ratios(sections, most_steal_pct):
    """The ratios of throughput of all workloads and devices together: {server: [ratios]}. sections are {server: runs}
    each; an open loop is left out, where the throughput is what the plan asks for, and so is a pair that was noisy."""
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
                if ratio is not None and result.is_quiet(pair, most_steal_pct):
                    found.setdefault(server, []).append(ratio)
    return found


def differs(of_servers, reference, server):
    """Whether, in every repetition, and there are enough, a server differs from the reference by more than this from
    itself."""
    own, noise = of_servers.get(server), of_servers.get(reference)
    ratio = own and own["ratio"]
    if not noise or not ratio or not noise["median"] or ratio["of"] < LEAST_REPETITIONS:
        return False
    return ratio["min"] > noise["max"] / noise["median"] or ratio["max"] < noise["min"] / noise["median"]
