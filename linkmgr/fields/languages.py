"""Languages of visits: English names in lower case by ISO 639-1 code."""

LANGUAGES = {
    "ar": "arabic", "bg": "bulgarian", "bn": "bengali", "ca": "catalan", "cs": "czech", "da": "danish",
    "de": "german", "el": "greek", "en": "english", "es": "spanish", "et": "estonian", "fa": "persian",
    "fi": "finnish", "fr": "french", "he": "hebrew", "hi": "hindi", "hr": "croatian", "hu": "hungarian",
    "id": "indonesian", "it": "italian", "ja": "japanese", "ko": "korean", "lt": "lithuanian", "lv": "latvian",
    "ms": "malay", "nb": "norwegian", "nl": "dutch", "nn": "norwegian", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sk": "slovak", "sl": "slovenian", "sr": "serbian",
    "sv": "swedish", "sw": "swahili", "th": "thai", "tr": "turkish", "uk": "ukrainian", "ur": "urdu",
    "vi": "vietnamese", "zh": "chinese",
}  # fmt: skip
