"""Parameters that several routes share: the services, the caller by permission, names, and pages of lists."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query

from allonym.server.access import Caller, get_services, require_permissions
from allonym.server.services import Services

AnyServices = Annotated[Services, Depends(get_services)]

SignedIn = Annotated[Caller, require_permissions()]
Admin = Annotated[Caller, require_permissions("admin")]
Detecting = Annotated[Caller, require_permissions("detect")]
Anonymizing = Annotated[Caller, require_permissions("anonymize")]
Restoring = Annotated[Caller, require_permissions("restore")]
Evaluating = Annotated[Caller, require_permissions("evaluate")]
JobUser = Annotated[Caller, require_permissions("jobs")]
ReleaseUser = Annotated[Caller, require_permissions("jobs", "anonymize")]
Reviewer = Annotated[Caller, require_permissions("review")]
Adjudicator = Annotated[Caller, require_permissions("review", "adjudicate")]
Scholar = Annotated[Caller, require_permissions("studies")]

Name = Annotated[str, Path(min_length=1, max_length=64)]
Number = Annotated[int, Path(ge=1, le=1 << 62)]
Offset = Annotated[int, Query(ge=0, le=1 << 31)]
Limit = Annotated[int, Query(ge=1, le=1000)]
