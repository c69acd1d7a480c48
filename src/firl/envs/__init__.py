"""The environments of the paper's density experiments, registered with Gymnasium.

Importing this package is enough: `gymnasium.make("firl/PointMass-v0")` works afterwards, and
`gymnasium.make("firl.envs:firl/PointMass-v0")` imports it by itself. Both take `horizon` and
truncate by themselves, so they have no `max_episode_steps`.
"""

from gymnasium.envs.registration import register

register(
    id="firl/PointMass-v0",
    entry_point="firl.envs.point_mass:PointMassEnv",
    vector_entry_point="firl.envs.point_mass:PointMassVectorEnv",
)
register(
    id="firl/ReacherTrace-v0",
    entry_point="firl.envs.reacher:ReacherTraceEnv",
    vector_entry_point="firl.envs.reacher:ReacherTraceVectorEnv",
)
