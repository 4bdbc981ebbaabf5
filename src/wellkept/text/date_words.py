"""Dates in German, French, Spanish, Italian, Portuguese and Dutch, said in English: one set of patterns reads all."""

import re
from functools import cache
from types import MappingProxyType

from wellkept.text import languages, words

_MONTHS = "january february march april may june july august september october november december".split()
_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_NUMBERS = "one two three four five six seven eight nine ten".split()


def _table(months: str, days: str, numbers: str, others: str) -> dict[str, str]:
    """Words in the order of the English ones, those for one thing joined by a stroke; others as english=theirs."""
    pairs = [*zip(_MONTHS, months.split(), strict=True), *zip(_DAYS, days.split(), strict=True)]
    pairs += zip(_NUMBERS, numbers.split(), strict=True)
    pairs += [(english, theirs) for english, theirs in (one.split("=") for one in others.split())]
    return {word: english for english, theirs in pairs for word in theirs.split("|")}


_TABLES = MappingProxyType(
    {
        "german": _table(
            "januar|janner februar marz april mai juni juli august september oktober november dezember",
            "montag dienstag mittwoch donnerstag freitag samstag|sonnabend sonntag",
            "ein|einem|einer zwei drei vier funf sechs sieben acht neun zehn",
            """today=heute tonight=heute-abend yesterday=gestern tomorrow=morgen
            day-before-yesterday=vorgestern day-after-tomorrow=ubermorgen last=letzte|letzten|letzter|letztes
            last=letztem|vergangene|vergangenen|vorige|vorigen next=nachste|nachsten|nachster|nachstes
            next=nachstem|kommende|kommenden
            this=diese|diesen|dieser|dieses|diesem day=tag|tage|tagen week=woche|wochen weekend=wochenende
            month=monat|monate|monaten year=jahr|jahre|jahren before=vor in=in recently=neulich|kurzlich
            soon=bald|demnachst happened=passierte|passiert|geschah|gemacht
            planned=geplant late=ende early=anfang mid=mitte""",
        ),
        "french": _table(
            "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
            "lundi mardi mercredi jeudi vendredi samedi dimanche",
            "un|une deux trois quatre cinq six sept huit neuf dix",
            """today=aujourd yesterday=hier tomorrow=demain last=dernier|derniere|derniers|dernieres|passe|passee
            next=prochain|prochaine|prochains|prochaines this=ce|cet|cette day=jour|jours week=semaine|semaines
            weekend=week-end month=mois year=an|ans|annee|annees before=il-y-a in=dans|en recently=recemment
            soon=bientot happened=passe|arrive|fait planned=prevu|prevue late=fin early=debut mid=mi""",
        ),
        "spanish": _table(
            "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
            "lunes martes miercoles jueves viernes sabado domingo",
            "un|uno|una dos tres cuatro cinco seis siete ocho nueve diez",
            """today=hoy yesterday=ayer day-before-yesterday=anteayer tomorrow=manana
            last=pasado|pasada|pasados|pasadas|ultimo|ultima|ultimos|ultimas
            next=proximo|proxima|proximos|proximas|viene this=este|esta day=dia|dias week=semana|semanas
            month=mes|meses year=ano|anos before=hace in=en recently=recientemente|ultimamente soon=pronto
            weekend=fin-de-semana happened=paso|ocurrio|sucedio|hice planned=previsto
            late=finales early=principios mid=mediados""",
        ),
        "italian": _table(
            "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
            "lunedi martedi mercoledi giovedi venerdi sabato domenica",
            "un|uno|una due tre quattro cinque sei sette otto nove dieci",
            """today=oggi yesterday=ieri tomorrow=domani day-after-tomorrow=dopodomani
            last=scorso|scorsa|scorsi|scorse|passato|passata|ultimo|ultima
            next=prossimo|prossima|prossimi|prossime this=questo|questa day=giorno|giorni week=settimana|settimane
            month=mese|mesi year=anno|anni ago=fa in=in|tra|fra recently=recentemente soon=presto
            weekend=fine-settimana happened=successo|accaduto|fatto planned=previsto
            late=fine early=inizio mid=meta""",
        ),
        "portuguese": _table(
            "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
            "segunda terca quarta quinta sexta sabado domingo",
            "um|uma dois|duas tres quatro cinco seis sete oito nove dez",
            """today=hoje yesterday=ontem day-before-yesterday=anteontem tomorrow=amanha
            last=passado|passada|passados|passadas|ultimo|ultima
            next=proximo|proxima|proximos|proximas|vem this=este|esta|neste|nesta day=dia|dias week=semana|semanas
            month=mes|meses year=ano|anos ago=atras before=ha in=em recently=recentemente soon=breve
            weekend=fim-de-semana happened=aconteceu|fiz planned=previsto
            late=fim|final early=inicio mid=meados""",
        ),
        "dutch": _table(
            "januari februari maart april mei juni juli augustus september oktober november december",
            "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
            "een twee drie vier vijf zes zeven acht negen tien",
            """today=vandaag tonight=vanavond yesterday=gisteren tomorrow=morgen
            day-before-yesterday=eergisteren day-after-tomorrow=overmorgen
            last=vorige|afgelopen|laatste
            next=volgende|komende this=deze|dit day=dag|dagen week=week|weken weekend=weekend month=maand|maanden
            year=jaar|jaren ago=geleden in=in|over recently=onlangs soon=binnenkort happened=gebeurde|gebeurd|gedaan
            planned=gepland late=eind early=begin mid=medio""",
        ),
    }
)
_TELLING = frozenset(
    word
    for table in _TABLES.values()
    for word, english in table.items()
    if english not in (*_NUMBERS, "in", "this", "happened", "planned", "early", "mid", "late")
    and word != english
    and word not in ("an", "fa", "ha", "vor")
) - frozenset({"mars", "hier", "marco", "julio", "vem"})
"""Words that are dates in one of the languages and nothing in English; names and "hier" need their language."""
_MARKED = re.compile(r"[\w-]+|[^\w-]+")
_UNITS = r"(?:day|week|weekend|month|year)s?"


def in_english(text: str) -> str:
    """A text with its dates in English, if it has any in another language; otherwise as it is.

    >>> in_english("Was war vor zwei Wochen, und in der letzten Woche?")
    'was war two week ago, und in der last week?'
    >>> in_english("Et la semaine derniere, le 3 mars?"), in_english("And last week?")
    ('et la last week, le 3 march?', 'And last week?')
    """
    said = words.words(text)
    if not said or (text.isascii() and _known().isdisjoint(said)):
        return text
    spoken = words.languages_of(said)
    may = [
        language
        for language, table in _TABLES.items()
        if (language in spoken and len(spoken) < len(languages.STOPS))
        or not _TELLING.isdisjoint(table.keys() & {*said})
    ]
    if not may:
        return text
    table = _TABLES[
        max(may, key=lambda one: sum(word in _TABLES[one] or word in languages.STOPS[one] for word in said))
    ]
    if table.keys().isdisjoint(said):
        return text
    folded = "".join(words.plain(text))
    for phrase in ("il y a", "fin de semana", "fim de semana", "fine settimana", "week-end", "heute abend"):
        folded = folded.replace(phrase, phrase.replace(" ", "-"))
    translated = "".join(table.get(part, part) for part in _MARKED.findall(folded))
    number = rf"(\d{{1,3}}|{'|'.join(_NUMBERS)})"
    translated = re.sub(rf"\bbefore {number} ({_UNITS})\b(?! ago)", r"\1 \2 ago", translated)
    translated = re.sub(rf"\b({_UNITS}|{'|'.join(_DAYS)}) (last|next)\b", r"\2 \1", translated)
    translated = re.sub(rf"\b(early|mid|late)[ -](?:d[eiou] )?({'|'.join(_MONTHS)})\b", r"\1 \2", translated)
    return re.sub(rf"\b(\d{{1,2}})\.? (?:de )?({'|'.join(_MONTHS)})(?: de)?\b", r"\1 \2", translated)


@cache
def _known() -> frozenset[str]:
    return frozenset(word for table in _TABLES.values() for word, english in table.items() if word != english)
