"""A vCard 3.0 (RFC 2426), which the address books of all phones read."""

_WIDTH = 75  # bytes of a line before it is folded
_TEXT = str.maketrans({"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"} | dict.fromkeys("\r\x85\u2028\u2029"))


def vcard(data: dict[str, str]) -> str:
    """`data` is a QR code's of the type vcard: all of its members, "" for those that are not known."""
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
    content = [_folded(f"{name}:{value}") for name, value in lines.items() if value]
    return "\r\n".join(["BEGIN:VCARD", "VERSION:3.0", *content, "END:VCARD", ""])


def _folded(line: str) -> str:
    """Goes on in the next line after a space, and never inside of a character."""
    pieces, size = [""], 0
    for character in line:
        size += len(character.encode())
        if size > _WIDTH:
            pieces.append(" ")
            size = 1 + len(character.encode())
        pieces[-1] += character
    return "\r\n".join(pieces)
