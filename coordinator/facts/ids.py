"""Ids, each a type of its own so that they cannot be confused."""

from typing import NewType

WorkerId = NewType("WorkerId", str)
StageId = NewType("StageId", str)
PortId = NewType("PortId", str)
PipelineId = NewType("PipelineId", str)
ArtifactId = NewType("ArtifactId", str)
DeviceId = NewType("DeviceId", str)
ConstraintId = NewType("ConstraintId", str)
PoolId = NewType("PoolId", str)
RequestId = NewType("RequestId", str)
SessionId = NewType("SessionId", str)
ExecutionId = NewType("ExecutionId", int)
Incarnation = NewType("Incarnation", int)
