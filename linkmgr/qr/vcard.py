"""vCard 3.0 (RFC 2426), the version that all phones read."""

_MAX_LINE = 75  # bytes
_TEXT = str.maketrans(
    {"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"} | dict.fromkeys("\r\x85\u2028\u2029")
)


def vcard(data: dict[str, str]) -> str:
    text = {member: value.translate(_TEXT) for member, value in data.items()}
    address = ";".join(text[member] for member in ("street", "city", "state", "zip", "country"))
    lines = {
        "N": f"{text['lname']};{text['fname']};;;",
        "FN": " ".join(filter(None, (text["fname"], text["lname"]))) or text["org"],
        "ORG": text["org"],
        "TEL;TYPE=VOICE": text["phone"],
        "TEL;TYPE=CELL": text["cell"],
        "TEL;TYPE=FAX": text["fax"],
        "EMAIL;TYPE=INTERNET": text["email"],
        "URL": data["site"],
        "ADR": f";;{address}" if address.strip(";") else "",
    }
    content = [_fold(f"{name}:{value}") for name, value in lines.items() if value]
    return "\r\n".join(["BEGIN:VCARD", "VERSION:3.0", *content, "END:VCARD", ""])


def _fold(line: str) -> str:
    lines, size = [""], 0
    for character in line:
        size += len(character.encode())
        if size > _MAX_LINE:
            lines.append(" ")
            size = 1 + len(character.encode())
        lines[-1] += character
    return "\r\n".join(lines)
