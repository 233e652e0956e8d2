"""Parameters that several routes share: the services, the caller by permission, names, and pages of lists."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query

from allonym.server.access import Caller, get_services, make_permission_dependency
from allonym.server.services import Services

AnyServices = Annotated[Services, Depends(get_services)]

SignedIn = Annotated[Caller, make_permission_dependency()]
Admin = Annotated[Caller, make_permission_dependency("admin")]
Detecting = Annotated[Caller, make_permission_dependency("detect")]
Anonymizing = Annotated[Caller, make_permission_dependency("anonymize")]
Restoring = Annotated[Caller, make_permission_dependency("restore")]
Evaluating = Annotated[Caller, make_permission_dependency("evaluate")]
JobUser = Annotated[Caller, make_permission_dependency("jobs")]
ReleaseUser = Annotated[Caller, make_permission_dependency("jobs", "anonymize")]
Reviewer = Annotated[Caller, make_permission_dependency("review")]
Adjudicator = Annotated[Caller, make_permission_dependency("review", "adjudicate")]
Scholar = Annotated[Caller, make_permission_dependency("studies")]

Name = Annotated[str, Path(min_length=1, max_length=64)]
Number = Annotated[int, Path(ge=1, le=1 << 62)]
Offset = Annotated[int, Query(ge=0, le=1 << 31)]
Limit = Annotated[int, Query(ge=1, le=1000)]
