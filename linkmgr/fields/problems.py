"""The messages of a marshmallow error."""

from typing import Any


def join_problems(messages: dict[str, Any]) -> str:
    """Join the messages of a marshmallow error, each after the name of its member."""
    return "; ".join(
        f"{'' if member == '_schema' else member + ' '}{problem}"
        for member, problems in messages.items()
        for problem in (problems if isinstance(problems, list) else [join_problems(problems)])
    )


def errors(messages: dict[str, Any], path: str = "") -> list[dict[str, str]]:
    """Return each problem of a marshmallow error with the path of its member, such as `geotarget.0.link`."""
    return [
        error
        for member, problems in messages.items()
        for field in [path if member == "_schema" else f"{path}.{member}".removeprefix(".")]
        for error in (
            errors(problems, field)
            if isinstance(problems, dict)
            else [
                {"field": field, "code": "invalid", "message": f"{field} {problem}.".lstrip()} for problem in problems
            ]
        )
    ]
