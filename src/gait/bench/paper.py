"""What the paper reports: the means of its tables, to stand beside ours.

Seo et al., *GAIT: Legged Robot Proprioceptive State Estimation with Attention over Inertial-Leg Tokens*, Tables I to
IV: a real Go1 against motion capture. Keys are those of the rows of `gait.bench.paper_tables`, then the method.
"""

from __future__ import annotations

from typing import TypeAlias

_Table: TypeAlias = dict[tuple[str, ...], tuple[float, ...]]
_ORDER = ("gait", "gait-flat", "nmn", "iekf")
_ALL = ("iekf", "iekf-sr", "nmn", "gait-flat", "gait")

_TABLE1: _Table = {
    ("rubber", "full"): (0.098, 0.103, 0.126, 0.128),
    ("rubber", "slip"): (0.102, 0.108, 0.138, 0.141),
    ("slippery", "full"): (0.187, 0.185, 0.192, 0.236),
    ("slippery", "slip"): (0.217, 0.211, 0.222, 0.286),
    ("debris", "full"): (0.187, 0.203, 0.194, 0.235),
    ("debris", "slip"): (0.209, 0.222, 0.217, 0.275),
    ("circular", "full"): (0.146, 0.151, 0.154, 0.177),
    ("circular", "slip"): (0.162, 0.166, 0.170, 0.204),
}
_TABLE2: _Table = {
    ("trot",): (0.1052, 0.1135, 0.1353, 0.1399),
    ("bound",): (0.3181, 0.3485, 0.4013, 0.3401),
    ("pace",): (0.3181, 0.5339, 0.6766, 0.4245),
    ("pronk",): (0.3629, 0.4339, 0.5656, 0.4217),
}
_TABLE3: _Table = {
    ("bound-pace-pronk",): (0.120, 0.240, 0.274),
    ("pace-pronk",): (0.222, 0.320, 0.332),
}
_TABLE4: _Table = {
    ("ate_vel", "rubber"): (0.1161, 0.1125, 0.1155, 0.1036, 0.0997),
    ("ate_vel", "slippery"): (0.2036, 0.1840, 0.1687, 0.1582, 0.1537),
    ("ate_vel", "debris"): (0.1986, 0.1739, 0.1646, 0.1718, 0.1584),
    ("ate_vel", "circular"): (0.1562, 0.1435, 0.1393, 0.1372, 0.1277),
    ("ate_vel", "mean"): (0.1666, 0.1519, 0.1458, 0.1414, 0.1336),
    ("ate_rot", "rubber"): (0.1493, 0.1708, 0.1343, 0.1361, 0.1362),
    ("ate_rot", "slippery"): (0.0366, 0.0254, 0.0163, 0.0166, 0.0183),
    ("ate_rot", "debris"): (0.0324, 0.0156, 0.0162, 0.0139, 0.0141),
    ("ate_rot", "circular"): (0.2831, 0.1606, 0.1471, 0.1357, 0.1382),
    ("ate_rot", "mean"): (0.1344, 0.0986, 0.0835, 0.0803, 0.0815),
    ("re_pos", "rubber"): (0.1985, 0.2087, 0.3044, 0.1981, 0.1141),
    ("re_pos", "slippery"): (0.2670, 0.3547, 0.2275, 0.3546, 0.2066),
    ("re_pos", "debris"): (0.4247, 0.3381, 0.1517, 0.2795, 0.1302),
    ("re_pos", "circular"): (0.2190, 0.2540, 0.2451, 0.3190, 0.2068),
    ("re_pos", "mean"): (0.2722, 0.2847, 0.2347, 0.2870, 0.1653),
    ("re_vel", "rubber"): (0.1773, 0.1705, 0.1569, 0.1474, 0.1503),
    ("re_vel", "slippery"): (0.3068, 0.2646, 0.2507, 0.2133, 0.2245),
    ("re_vel", "debris"): (0.2875, 0.2552, 0.2465, 0.2519, 0.2363),
    ("re_vel", "circular"): (0.2315, 0.2030, 0.1987, 0.1970, 0.1893),
    ("re_vel", "mean"): (0.2477, 0.2207, 0.2109, 0.2007, 0.1982),
    ("re_rot", "rubber"): (0.0334, 0.0357, 0.0425, 0.0311, 0.0316),
    ("re_rot", "slippery"): (0.0213, 0.0148, 0.0132, 0.0132, 0.0133),
    ("re_rot", "debris"): (0.0198, 0.0152, 0.0142, 0.0143, 0.0144),
    ("re_rot", "circular"): (0.0574, 0.0423, 0.0433, 0.0394, 0.0391),
    ("re_rot", "mean"): (0.0344, 0.0281, 0.0295, 0.0255, 0.0256),
}


def _by_method(table: _Table, methods: tuple[str, ...]) -> dict[str, float]:
    return {
        ".".join((*keys, method)): value
        for keys, values in table.items()
        for method, value in zip(methods, values, strict=False)
    }


PAPER: dict[str, dict[str, float]] = {
    "table1": _by_method(_TABLE1, _ORDER),
    "table2": _by_method(_TABLE2, _ORDER),
    "table3": _by_method(_TABLE3, _ORDER[:3]),
    "table4": _by_method(_TABLE4, _ALL),
}
"""By table, then by row and method: `PAPER["table4"]["re_pos.mean.gait"]` is 0.1653."""
