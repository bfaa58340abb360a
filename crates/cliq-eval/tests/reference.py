"""The same statistics by scipy and statsmodels. Reads a JSON list of tables, prints a JSON list of results."""

import json
import sys

import numpy as np
from scipy import stats
from scipy.special import comb
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint


def wilson(passed, trials):
    return [0, 1] if trials == 0 else list(proportion_confint(passed, trials, 0.05, "wilson"))


def bootstrap(differences):
    """The expanded percentile interval: scipy resamples, at the level that stands for Student's t with few cases."""
    n = len(differences)
    tail = stats.norm.cdf(-np.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1))
    result = stats.bootstrap((np.array(differences),), np.mean, confidence_level=1 - 2 * tail, n_resamples=20000, method="percentile", rng=np.random.default_rng(1))
    return [result.confidence_interval.low, result.confidence_interval.high]


results = []
for table in json.load(sys.stdin):
    passed, trials = np.array(table["passed"]), np.array(table["trials"])
    k = table["k"]
    enough = trials >= k
    flips = [2 * p * (n - p) / (n * (n - 1)) for p, n in zip(passed, trials) if n >= 2]
    (a, n), (b, m) = table["first"], table["second"]
    only_first, only_second = table["discordant"]
    results.append({
        "wilson": [wilson(p, n) for p, n in zip(passed, trials)],
        "newcombe": list(confint_proportions_2indep(a, n, b, m, compare="diff", method="newcomb", alpha=0.05)),
        "mcnemar": float(mcnemar([[7, only_first], [only_second, 5]], exact=True).pvalue),
        "pass_power": float(np.mean(comb(passed[enough], k) / comb(trials[enough], k))) if enough.any() else None,
        "flip_rate": float(np.mean(flips)) if flips else None,
        "quantiles": [float(np.quantile(table["values"], q)) for q in (0.5, 0.9)],
        "bootstrap": bootstrap(table["differences"]),
    })
json.dump(results, sys.stdout)
