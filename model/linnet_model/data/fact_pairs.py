"""Made-up English sentences with facts and their German translations, as training pairs.

Texts that may be trained on hold few amounts of money, dates with a year or times of day, and a
model that saw a number only a few times loses it. Every sentence here has one of our own frames,
with random values in the forms that each language writes. linnet_research.evaluation.facts measures
with other sentences, which are never trained on.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from linnet_model.data.synthetic import address, given_name, name, word

# English and German; a slot has the same values on both sides.
FRAMES = (
    ("The course starts on {date}.", "Der Kurs beginnt am {date}."),
    ("My flight departs on {date} at {time}.", "Mein Flug geht am {date} um {time}."),
    (
        "We will meet at {time} in front of the town hall.",
        "Wir treffen uns um {time} vor dem Rathaus.",
    ),
    ("This coat costs {amount}.", "Dieser Mantel kostet {amount}."),
    ("She earns {amount} a month.", "Sie verdient {amount} im Monat."),
    ("He sold his car for {amount}.", "Er hat sein Auto für {amount} verkauft."),
    ("The town has {number} inhabitants.", "Die Stadt hat {number} Einwohner."),
    (
        "More than {number} workers signed the letter.",
        "Mehr als {number} Arbeiter haben den Brief unterschrieben.",
    ),
    ("My e-mail address is {email}.", "Meine E-Mail-Adresse lautet {email}."),
    ("Tell {name} to answer {email}.", "Sag {name}, dass er {email} antworten soll."),
    ("{name} works for {person}.", "{name} arbeitet für {person}."),
    (
        "{name} has been working in Berlin since {date}.",
        "{name} arbeitet seit dem {date} in Berlin.",
    ),
    ("The contract ends on {date}.", "Der Vertrag endet am {date}."),
    ("My address is {place}.", "Meine Adresse ist {place}."),
    ("{name} has moved to {street}.", "{name} ist in die {street} gezogen."),
    ("We are having a party at {street}.", "Wir feiern in der {street}."),
    (
        "You will find {name} in room {number}, {place}.",
        "Sie finden {name} in Zimmer {number}, {place}.",
    ),
    (
        "Please call me back at {time} today.",
        "Bitte rufen Sie mich heute um {time} zurück.",
    ),
    (
        "We would like two rooms for {date}, arriving at {time}.",
        "Wir hätten gern für den {date} zwei Zimmer, Ankunft um {time}.",
    ),
    (
        "On {date}, {name} counted {number} birds.",
        "Am {date} zählte {name} {number} Vögel.",
    ),
    ("The shop has moved: {place}.", "Das Geschäft ist umgezogen: {place}."),
    ("The film starts at {time}.", "Der Film fängt um {time} an."),
    ("The rent is {amount} a month.", "Die Miete beträgt {amount} im Monat."),
    (
        "We received {amount} from {name} on {date}.",
        "Wir haben am {date} {amount} von {name} erhalten.",
    ),
    (
        "In {year}, the company sold {number} tables.",
        "Im Jahr {year} verkaufte das Unternehmen {number} Tische.",
    ),
    ("The river is {number} metres long.", "Der Fluss ist {number} Meter lang."),
    (
        "Nobody is at home between {time} and {later}.",
        "Zwischen {time} und {later} ist niemand zu Hause.",
    ),
    (
        "Hello {name}, your appointment is on {date} at {time}.",
        "Hallo {name}, Ihr Termin ist am {date} um {time}.",
    ),
    ("The answer is on {url}.", "Die Antwort steht auf {url}."),
    ("{number} of {count} tickets are sold.", "{number} von {count} Karten sind verkauft."),
    ("Call {name} before {time}.", "Ruf {name} vor {time} an."),
    ("It became {decimal} degrees warm.", "Es wurde {decimal} Grad warm."),
    (
        "{percent} of the pupils passed the exam.",
        "{percent} der Schüler haben die Prüfung bestanden.",
    ),
    ("Instead of {amount} you pay only {price}.", "Statt {amount} zahlen Sie nur {price}."),
    (
        "{name} ({email}) ordered {number} chairs.",
        "{name} ({email}) hat {number} Stühle bestellt.",
    ),
    ("Yesterday {name} lent me {amount}.", "Gestern hat mir {name} {amount} geliehen."),
    ("Please pay the invoice by {date}.", "Bitte bezahlen Sie die Rechnung bis zum {date}."),
    (
        "We have not received your invoice for {amount} yet.",
        "Wir haben Ihre Rechnung über {amount} noch nicht erhalten.",
    ),
    ("The payment of {amount} is due today.", "Die Zahlung von {amount} ist heute fällig."),
    ("The report is due at {time}.", "Der Bericht ist um {time} fällig."),
    ("I owe my brother {amount}.", "Ich schulde meinem Bruder {amount}."),
    ("Children pay {amount}, grown-ups {price}.", "Kinder zahlen {amount}, Erwachsene {price}."),
    (
        "Write to {email} if you have any questions.",
        "Schreiben Sie an {email}, wenn Sie Fragen haben.",
    ),
    (
        "Please send your answer to {email} by {date}.",
        "Bitte senden Sie Ihre Antwort bis zum {date} an {email}.",
    ),
    ("Register at {url} before {date}.", "Melden Sie sich vor dem {date} unter {url} an."),
    (
        "Applications go to {email} until {date} at {time}.",
        "Bewerbungen gehen bis zum {date} um {time} an {email}.",
    ),
    (
        "Ask at {email} whether the order of {date} has arrived.",
        "Fragen Sie bei {email} nach, ob die Bestellung vom {date} angekommen ist.",
    ),
    (
        "The shop is open from {time} to {later}.",
        "Das Geschäft ist von {time} bis {later} geöffnet.",
    ),
    (
        "The bus arrives at {time} and leaves again at {later}.",
        "Der Bus kommt um {time} an und fährt um {later} wieder ab.",
    ),
    ("Deliver it to {place} before {time}.", "Liefern Sie es vor {time} an {place}."),
    (
        "The exhibition opened on {date}; {number} visitors came.",
        "Die Ausstellung wurde am {date} eröffnet; es kamen {number} Besucher.",
    ),
    (
        "{number} students passed the test, {count} failed it.",
        "{number} Studenten haben die Prüfung bestanden, {count} sind durchgefallen.",
    ),
    ("The fine is {amount}.", "Die Strafe beträgt {amount}."),
    (
        "Your order of {date} costs {amount} in all.",
        "Ihre Bestellung vom {date} kostet insgesamt {amount}.",
    ),
    (
        "The deposit of {amount} will be paid back by {date}.",
        "Die Kaution von {amount} wird bis zum {date} zurückgezahlt.",
    ),
    (
        "{name} ran the distance in {decimal} seconds.",
        "{name} lief die Strecke in {decimal} Sekunden.",
    ),
    (
        "The conference on {date} starts at {time} and ends at {later}.",
        "Die Konferenz am {date} beginnt um {time} und endet um {later}.",
    ),
    (
        "Please tell {email} before {date} whether you will come.",
        "Bitte teilen Sie {email} vor dem {date} mit, ob Sie kommen.",
    ),
    (
        "If you want to take part, write to {name} at {email} before {date}.",
        "Wenn Sie teilnehmen möchten, schreiben Sie vor dem {date} an {name} unter {email}.",
    ),
    ("Details were sent to {email} on {date}.", "Einzelheiten gingen am {date} an {email}."),
    ("{name} can be found at {url}.", "{name} ist unter {url} zu finden."),
    (
        "{name} answers your questions at {email}.",
        "{name} beantwortet Ihre Fragen unter {email}.",
    ),
    (
        "Since {date}, {number} trees have been planted.",
        "Seit dem {date} wurden {number} Bäume gepflanzt.",
    ),
    (
        "By {date}, {number} flats had been built.",
        "Bis zum {date} waren {number} Wohnungen gebaut.",
    ),
    (
        "In {year}, {number} children were born here.",
        "Im Jahr {year} wurden hier {number} Kinder geboren.",
    ),
    (
        "Until {date}, {count} of {number} rooms were empty.",
        "Bis zum {date} standen {count} von {number} Zimmern leer.",
    ),
    (
        "I would like to see the doctor tomorrow at {time}.",
        "Ich möchte morgen um {time} zum Arzt.",
    ),
    (
        "Could you order a taxi for two people for {time} tonight?",
        "Könnten Sie für heute Abend um {time} ein Taxi für zwei Personen bestellen?",
    ),
    (
        "We have ordered lunch for six people at {time} on Monday.",
        "Wir haben für Montag um {time} ein Mittagessen für sechs Personen bestellt.",
    ),
    (
        "Can you move my lesson from {time} to {later}?",
        "Können Sie meine Stunde von {time} auf {later} verlegen?",
    ),
    (
        "The doors open at {time}, the show begins at {later}.",
        "Einlass ist um {time}, die Vorstellung fängt um {later} an.",
    ),
    (
        "The bakery opens at {time} on Saturdays and closes at {later}.",
        "Die Bäckerei macht samstags um {time} auf und um {later} zu.",
    ),
    ("You can reach us by e-mail: {email}.", "Sie erreichen uns per E-Mail: {email}."),
    (
        "{name} can always be reached at {email}.",
        "{name} ist immer unter {email} zu erreichen.",
    ),
    (
        "Before noon you can reach {name} by telephone.",
        "Vormittags erreichen Sie {name} telefonisch.",
    ),
    ("{name} lives with {person} now.", "{name} lebt jetzt bei {person}."),
    ("I have to get up at {clock} tomorrow.", "Ich muss morgen um {clock} aufstehen."),
    ("Shall we meet at {clock}?", "Wollen wir uns um {clock} treffen?"),
    ("The lesson begins at {clock}.", "Der Unterricht beginnt um {clock}."),
    (
        "{name} did not come home until {clock}.",
        "{name} kam erst um {clock} nach Hause.",
    ),
    ("It was {clock} when the telephone rang.", "Es war {clock}, als das Telefon klingelte."),
    ("We have been waiting since {clock}.", "Wir warten schon seit {clock}."),
    ("The last bus leaves at {clock}.", "Der letzte Bus fährt um {clock}."),
    ("My sister lives at {street}.", "Meine Schwester wohnt in der {street}."),
    (
        "The school is at {street}, next to the church.",
        "Die Schule steht in der {street}, neben der Kirche.",
    ),
    ("Please come to {street} at {time}.", "Kommen Sie bitte um {time} in die {street}."),
    ("They sent the letter to {street}.", "Sie haben den Brief in die {street} geschickt."),
    ("{name} rents a flat at {street}.", "{name} mietet eine Wohnung in der {street}."),
    ("Does {name} still live at {street}?", "Wohnt {name} noch in der {street}?"),
    (
        "The ambulance came to {street} at {time}.",
        "Der Krankenwagen kam um {time} in die {street}.",
    ),
    ("Deliver the flowers to {street}.", "Liefern Sie die Blumen in die {street}."),
    ("{person} lives at {street} now.", "{person} lebt jetzt in der {street}."),
    (
        "{person} grew up in a flat at {street}.",
        "{person} ist in einer Wohnung in der {street} aufgewachsen.",
    ),
    (
        "The meeting place is {street}, at the corner.",
        "Treffpunkt ist {street}, an der Ecke.",
    ),
    ("Bring the chairs to {street}, please.", "Bringen Sie bitte die Stühle in die {street}."),
    ("Write to {person} at {email}.", "Schreiben Sie {person} unter {email}."),
    (
        "Ask for {person} or write to {email}.",
        "Fragen Sie nach {person} oder schreiben Sie an {email}.",
    ),
    (
        "In urgent cases you can reach {person} at {email}.",
        "In dringenden Fällen erreichen Sie {person} unter {email}.",
    ),
    ("I can reach {name} only at {email}.", "Ich erreiche {name} nur unter {email}."),
    (
        "The bill for {amount} has to be paid by {date}.",
        "Die Rechnung über {amount} muss bis zum {date} bezahlt werden.",
    ),
    (
        "The second instalment of {amount} is due on {date}.",
        "Die zweite Rate über {amount} ist am {date} fällig.",
    ),
    ("{name} and {person} are engaged.", "{name} und {person} sind verlobt."),
    ("Ask {name} whether {person} has paid.", "Frag {name}, ob {person} bezahlt hat."),
)
MONTHS = (
    ("January", "Januar"),
    ("February", "Februar"),
    ("March", "März"),
    ("April", "April"),
    ("May", "Mai"),
    ("June", "Juni"),
    ("July", "Juli"),
    ("August", "August"),
    ("September", "September"),
    ("October", "Oktober"),
    ("November", "November"),
    ("December", "Dezember"),
)
# The hours from one to twelve, as they are said.
HOURS = (
    ("one", "eins"),
    ("two", "zwei"),
    ("three", "drei"),
    ("four", "vier"),
    ("five", "fünf"),
    ("six", "sechs"),
    ("seven", "sieben"),
    ("eight", "acht"),
    ("nine", "neun"),
    ("ten", "zehn"),
    ("eleven", "elf"),
    ("twelve", "zwölf"),
)
CURRENCIES = (("$", "dollars", "Dollar"), ("€", "euros", "Euro"), ("£", "pounds", "Pfund"))
STREETS = ("Street", "Road", "Avenue", "Drive")
GERMAN_STREETS = ("straße", "straße", "straße", "allee", "gasse")  # "in der"
GERMAN_PLACES = ("weg", "platz", "ring", "hof", "markt")
# First parts of German streets, most of them words, which are not translated either. No street of
# linnet_research.evaluation.facts is here.
STREET_WORDS = """
Haupt Schul Berg Linden Wald Ring Goethe Schiller Dorf Wiesen Rosen Markt Brunnen Feld Birken
Schloss Bahn Post Hafen Kloster Sonnen See Ufer Acker Tal Kirchen Kastanien Buchen Tannen Ahorn
Erlen Ulmen Weiden Fichten Pappel Eschen Kiefern Flieder Tulpen Nelken Veilchen Lilien Dahlien Mühl
Burg Turm Tor Rathaus Friedhof Spital Krankenhaus Bäcker Metzger Schmiede Weber Gerber Töpfer Färber
Müller Fischer Jäger Schäfer Bauern Bürger Herren Kaiser König Prinzen Fürsten Grafen Ritter Bischof
Mönch Nonnen Engel Kreuz Kapellen Marien Johannis Martins Nikolai Peters Jakobs Sankt-Anna Mozart
Beethoven Bach Schubert Wagner Lessing Heine Kant Hegel Luther Humboldt Bismarck Einstein Röntgen
Siemens Daimler Zeppelin Adler Falken Amsel Drossel Finken Lerchen Meisen Schwalben Storchen Hirsch
Reh Hasen Fuchs Wolfs Bären Rössle Lamm Ochsen Brücken Fluss Rhein Elbe Donau Main Mosel Berliner
Hamburger Münchner Kölner Bremer Dresdner Leipziger Stuttgarter Frankfurter Wiener Pariser Nord Süd
Ost West Ober Unter Mittel Neue Alte Lange Kurze Hohe Grüne Breite Stein Sand Kies Lehm Kalk Hügel
Höhen Hang Wein Obst Apfel Kirsch Pflaumen Nuss Hopfen Gersten Korn Heide Moor Teich Quellen
Industrie Gewerbe Fabrik Werk Zoll Hütten Gruben Sport Turn Stadion Theater Museums Bibliothek
""".split()  # noqa: SIM905 - a literal would have a line for each
OFTEN = 20
OWN_ADDRESS = 0.6  # share of the addresses of e-mail that hold the name in the sentence
NOUN = re.compile(r"(?<=[a-zäöüß,] )[A-ZÄÖÜ][a-zäöüß]{3,9}\b")
Value = tuple[str, str]


def same(text: str) -> Value:
    return text, text


def number(rng: random.Random) -> Value:
    value = rng.randrange(2, 10 ** rng.randint(2, 6))
    if value >= 1000 and rng.random() < 0.8:
        return f"{value:,}", f"{value:,}".replace(",", ".")
    return same(str(value))


def decimal(rng: random.Random) -> Value:
    text = f"{rng.randrange(100)}.{rng.randrange(10)}"
    return text, text.replace(".", ",")


def percent(rng: random.Random) -> Value:
    english, german = decimal(rng) if rng.random() < 0.3 else same(str(rng.randrange(2, 100)))
    return f"{english}%", f"{german} %"


def date(rng: random.Random) -> Value:
    day, year = rng.randint(1, 28), rng.randint(1900, 2050)
    english, german = rng.choice(MONTHS)
    forms = (f"{day} {english} {year}", f"{english} {day}, {year}", f"{day} {english}")
    form = rng.choice(forms)
    return form, f"{day}. {german}" + (f" {year}" if str(year) in form else "")


def time(rng: random.Random) -> Value:
    hour, minute = rng.randint(1, 12), rng.choice((0, 0, 0, 5, 10, 15, 20, 30, 40, 45, 55))
    afternoon = rng.random() < 0.5
    english = f"{hour}:{minute:02}" if minute else f"{hour}"
    german = hour % 12 + 12 * afternoon
    return (
        f"{english} {'pm' if afternoon else 'am'}",
        f"{german}:{minute:02} Uhr" if minute else f"{german} Uhr",
    )


def clock(rng: random.Random) -> Value:
    """A time in words: "half past nine" is "halb zehn"."""
    at = rng.randrange(12)
    (hour, german), (_, following) = HOURS[at], HOURS[(at + 1) % 12]
    return rng.choice(
        (
            (f"half past {hour}", f"halb {following}"),
            (f"half past {hour}", f"halb {following}"),
            (f"a quarter past {hour}", f"Viertel nach {german}"),
            (f"a quarter to {hour}", f"Viertel vor {german}"),
            (f"{hour} o'clock", f"{'ein' if german == 'eins' else german} Uhr"),
        )
    )


def amount(rng: random.Random) -> Value:
    sign, plural, german = rng.choice(CURRENCIES)
    if rng.random() < 0.2:
        text = f"{rng.randrange(2, 100)}.{rng.randrange(100):02}"
        target = text.replace(".", ",")
    else:
        text, target = number(rng)
    return (f"{sign}{text}" if rng.random() < 0.75 else f"{text} {plural}"), f"{target} {german}"


def person(rng: random.Random) -> Value:
    return same(f"{given_name(rng)} {name(rng)}" if rng.random() < 0.7 else given_name(rng))


def email(rng: random.Random, owner: str = "") -> Value:
    """An address of e-mail; that of `owner` holds the name, as most do."""
    digits = str(rng.randrange(100)) if rng.random() < 0.5 else ""
    box = owner.lower().replace(" ", ".") or f"{given_name(rng).lower()}.{word(rng, 2)}"
    return same(f"{box}{digits}@{word(rng, 2)}.{rng.choice(('com', 'org', 'de'))}")


def street(rng: random.Random, nouns: Sequence[str], german: Sequence[str]) -> Value:
    number = rng.randrange(1, 300)
    if rng.random() < 0.3:
        return same(f"{number} {name(rng)} {rng.choice(STREETS)}")
    kind = rng.random()
    first = (
        name(rng)
        if kind < 0.3
        else rng.choice(STREET_WORDS if kind < 0.6 else nouns or STREET_WORDS)
    )
    return same(f"{first}{rng.choice(german)} {number}")


def german_nouns(texts: Iterable[str]) -> list[str]:
    """Returns the words that German texts often write with a capital within a sentence, each once:
    nouns, whose translations a model knows best, but not where a street is named after one."""
    counts = Counter(noun for text in texts for noun in NOUN.findall(text))
    return sorted(noun for noun, count in counts.items() if count >= OFTEN)


SLOTS: dict[str, Callable[[random.Random], Value]] = {
    "amount": amount,
    "clock": clock,
    "count": number,
    "date": date,
    "decimal": decimal,
    "email": email,
    "later": time,
    "name": person,
    "number": number,
    "percent": percent,
    "person": person,
    "price": amount,
    "time": time,
    "url": lambda rng: same(address(rng)),
    "year": lambda rng: same(str(rng.randint(1900, 2050))),
}


def fact_pairs(count: int, rng: random.Random, nouns: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Makes sentences, English and German. `nouns` are German; streets are named after some."""
    slots = SLOTS | {
        "street": lambda rng: street(rng, nouns, GERMAN_STREETS),
        "place": lambda rng: street(rng, nouns, GERMAN_STREETS + GERMAN_PLACES),
    }
    pairs = []
    for _ in range(count):
        source, target = rng.choice(FRAMES)
        values = {slot: slots[slot](rng) for slot in re.findall(r"{(\w+)}", source)}
        owner, _ = values.get("person") or values.get("name") or same("")
        if "email" in values and owner.isascii() and rng.random() < OWN_ADDRESS:
            values["email"] = email(rng, owner)
        pairs.append(
            (
                source.format(**{slot: value[0] for slot, value in values.items()}),
                target.format(**{slot: value[1] for slot, value in values.items()}),
            )
        )
    return pairs
