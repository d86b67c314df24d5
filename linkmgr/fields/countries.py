"""ISO 3166 codes of countries and their English names.

The first name is the one of the built-in country database. Other databases use the further names, and change names over
time.
"""

_COUNTRIES = """
AD Andorra; AE United Arab Emirates; AF Afghanistan; AG Antigua and Barbuda; AI Anguilla; AL Albania; AM Armenia; AO
Angola; AQ Antarctica; AR Argentina; AS American Samoa; AT Austria; AU Australia; AW Aruba; AX Åland
Islands/Åland/Aland Islands; AZ Azerbaijan; BA Bosnia and Herzegovina/Bosnia & Herzegovina; BB Barbados; BD
Bangladesh; BE Belgium; BF Burkina Faso; BG Bulgaria; BH Bahrain; BI Burundi; BJ Benin; BL Saint Barthélemy/St
Barthélemy/Saint Barthelemy; BM Bermuda; BN Brunei/Brunei Darussalam; BO Bolivia/bolivia, plurinational state
of/bolivia (plurinational state of); BQ Bonaire, Sint Eustatius, and Saba/Bonaire, Sint Eustatius and Saba/Caribbean
Netherlands; BR Brazil; BS Bahamas/The Bahamas; BT Bhutan; BV Bouvet Island; BW Botswana; BY Belarus; BZ Belize; CA
Canada; CC Cocos (Keeling) Islands/Cocos Islands; CD DR Congo/Congo, Democratic Republic of the/Democratic Republic of
the Congo/Congo (DRC)/congo dr/congo, the democratic republic of the/congo (the democratic republic of the); CF
Central African Republic; CG Congo Republic/Congo/Republic of the Congo; CH Switzerland; CI Ivory Coast/Côte
d'Ivoire/Cote d'Ivoire; CK Cook Islands; CL Chile; CM Cameroon; CN China; CO Colombia; CR Costa Rica; CU Cuba; CV Cabo
Verde/Cape Verde; CW Curaçao/Curacao; CX Christmas Island; CY Cyprus; CZ Czechia/Czech Republic; DE Germany; DJ
Djibouti; DK Denmark; DM Dominica; DO Dominican Republic; DZ Algeria; EC Ecuador; EE Estonia; EG Egypt; EH Western
Sahara; ER Eritrea; ES Spain; ET Ethiopia; FI Finland; FJ Fiji; FK Falkland Islands/falkland islands (malvinas); FM
Micronesia/Federated States of Micronesia/micronesia, federated states of/micronesia (federated states of); FO Faroe
Islands; FR France; GA Gabon; GB United Kingdom/UK; GD Grenada; GE Georgia; GF French Guiana; GG Guernsey; GH Ghana;
GI Gibraltar; GL Greenland; GM The Gambia/Gambia; GN Guinea; GP Guadeloupe; GQ Equatorial Guinea; GR Greece; GS South
Georgia and the South Sandwich Islands; GT Guatemala; GU Guam; GW Guinea-Bissau; GY Guyana; HK Hong Kong; HM Heard and
McDonald Islands/Heard Island and McDonald Islands; HN Honduras; HR Croatia; HT Haiti; HU Hungary; ID Indonesia; IE
Ireland; IL Israel; IM Isle of Man; IN India; IO British Indian Ocean Territory; IQ Iraq; IR Iran/iran, islamic
republic of/iran (islamic republic of); IS Iceland; IT Italy; JE Jersey; JM Jamaica; JO Jordan/Hashemite Kingdom of
Jordan; JP Japan; KE Kenya; KG Kyrgyzstan; KH Cambodia; KI Kiribati; KM Comoros; KN St Kitts and Nevis/Saint Kitts and
Nevis; KP North Korea/korea, democratic people's republic of/korea (democratic people's republic of); KR South
Korea/Republic of Korea/Korea, Republic of/korea (republic of); KW Kuwait; KY Cayman Islands; KZ Kazakhstan; LA
Laos/lao people's democratic republic; LB Lebanon; LC Saint Lucia/St Lucia; LI Liechtenstein; LK Sri Lanka; LR
Liberia; LS Lesotho; LT Lithuania/Republic of Lithuania; LU Luxembourg; LV Latvia; LY Libya; MA Morocco; MC Monaco; MD
Moldova/Republic of Moldova/moldova, republic of/moldova (republic of); ME Montenegro; MF Saint Martin/St Martin/saint
martin (french part); MG Madagascar; MH Marshall Islands; MK North Macedonia/Macedonia; ML Mali; MM Myanmar/Burma; MN
Mongolia; MO Macao/Macau; MP Northern Mariana Islands; MQ Martinique; MR Mauritania; MS Montserrat; MT Malta; MU
Mauritius; MV Maldives; MW Malawi; MX Mexico; MY Malaysia; MZ Mozambique; NA Namibia; NC New Caledonia; NE Niger; NF
Norfolk Island; NG Nigeria; NI Nicaragua; NL The Netherlands/Netherlands; NO Norway; NP Nepal; NR Nauru; NU Niue; NZ
New Zealand; OM Oman; PA Panama; PE Peru; PF French Polynesia; PG Papua New Guinea; PH Philippines; PK Pakistan; PL
Poland; PM Saint Pierre and Miquelon/St Pierre and Miquelon; PN Pitcairn Islands/Pitcairn; PR Puerto Rico; PS
Palestine/Palestinian Territory/State of Palestine/palestine, state of/palestine (state of); PT Portugal; PW Palau; PY
Paraguay; QA Qatar; RE Réunion/Reunion; RO Romania; RS Serbia; RU Russia/Russian Federation; RW Rwanda; SA Saudi
Arabia; SB Solomon Islands; SC Seychelles; SD Sudan; SE Sweden; SG Singapore; SH Saint Helena/St Helena/saint helena,
ascension and tristan da cunha; SI Slovenia; SJ Svalbard and Jan Mayen; SK Slovakia; SL Sierra Leone; SM San Marino;
SN Senegal; SO Somalia; SR Suriname; SS South Sudan; ST São Tomé and Príncipe/Sao Tome and Principe; SV El Salvador;
SX Sint Maarten/sint maarten (dutch part); SY Syria/syrian arab republic; SZ Eswatini/Swaziland; TC Turks and Caicos
Islands; TD Chad; TF French Southern Territories; TG Togo; TH Thailand; TJ Tajikistan; TK Tokelau; TL Timor-Leste/East
Timor; TM Turkmenistan; TN Tunisia; TO Tonga; TR Türkiye/Turkey; TT Trinidad and Tobago; TV Tuvalu; TW Taiwan/taiwan,
province of china/taiwan (province of china); TZ Tanzania/tanzania, united republic of/tanzania (united republic of);
UA Ukraine; UG Uganda; UM U.S. Outlying Islands/U.S. Minor Outlying Islands/united states minor outlying islands; US
United States/United States of America; UY Uruguay; UZ Uzbekistan; VA Vatican City/Vatican/holy see/holy see (vatican
city state); VC St Vincent and Grenadines/Saint Vincent and the Grenadines; VE Venezuela/venezuela, bolivarian
republic of/venezuela (bolivarian republic of); VG British Virgin Islands/virgin islands, british; VI U.S. Virgin
Islands/virgin islands, u.s.; VN Vietnam/Viet Nam; VU Vanuatu; WF Wallis and Futuna; WS Samoa; XK Kosovo; YE Yemen; YT
Mayotte; ZA South Africa; ZM Zambia; ZW Zimbabwe
"""

NAMES: dict[str, list[str]] = {
    code: names.split("/")
    for code, _, names in (country.partition(" ") for country in " ".join(_COUNTRIES.split()).split("; "))
}
LOWER_NAMES = {name.lower() for names in NAMES.values() for name in names}
