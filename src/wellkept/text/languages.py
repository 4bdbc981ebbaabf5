"""The languages of texts: by the script of a word, and in Latin letters by the stop words of the text.

Words are folded as in ``words.tokens``: without case and diacritics.
"""

from collections.abc import Iterable, Sequence
from types import MappingProxyType

ENGLISH = "english"

STOPS = MappingProxyType(
    {
        language: frozenset(stops.split())
        for language, stops in {
            "german": """aber alle als auch auf aus bei bin bis bist da dann das dass dem den der des die dies
                diese dieser dieses doch du durch ein eine einem einen einer eines er es euch euer fur
                gegen habe haben hat hatte ich ihm ihn ihnen ihr ihre ihren ihrer im ist ja jede jeder
                kann kein keine mein meine meinem meinen meiner mich mir mit nach nicht noch nur ob oder
                ohne sein seine seinem seinen seiner seit sich sie sind uber um und uns unser unsere
                unter vom von vor wann war waren warum was welche welcher welches wenn wer wie wir wird
                wo wohin zu zum zur""",
            "french": """c d j l m n s t ai ainsi au aux avait avec avez avons ce ces cet cette chez comme
                comment dans de des du elle elles en est et ete etait eu il ils je la le les leur leurs
                lui ma mais mes moi mon ne nos notre nous on ont ou par pas pour pourquoi qu quand que
                quel quelle quelles quels qui quoi sa sans se ses son sont sur ta te tes toi ton tu un
                une vos votre vous""",
            "spanish": """al como con cual cuando cuales de del desde donde el ella ellas ellos en entre era eres
                es esa ese eso esta este esto estan fue ha han hasta hay la las le les lo los mas mi mis
                muy nos nosotros nuestra nuestro o para pero por porque que quien se ser si sin sobre
                son su sus tambien te tiene tu tus un una unas uno unos y ya yo""",
            "italian": """c cos l ai al alla alle anche che chi ci come con cosa da dal dalla dei del della delle
                dello di dove e ed era gli ha hanno ho i il io la le lei li lo loro lui ma mi mia mie
                mio nel nella noi non o per perche piu quale quali quando questa questo sei si sono su
                sua sue sul sulla suo tra tu tuo un una uno voi""",
            "portuguese": """ao aos as com como da das de dela dele do dos e ela elas ele eles em era essa esse esta
                este eu foi ha isso la mais mas me meu meus minha minhas muito na nas nao no nos nossa
                nosso o onde os ou para pela pelo por porque qual quais quando que quem se sem seu seus
                sua suas tem um uma voce""",
            "dutch": """aan al als bij dan dat de deze die dit een en er geen haar had heb hebben heeft hem het
                hij hoe hun ik is je jij jouw kan maar me mijn naar niet nog nu of om ons onze ook op
                over te tot u uit uw van voor waar waarom wanneer wat we welke werd wie wij wordt zal ze
                zich zij zijn""",
            "swedish": """att av de den det du eller en ett fran for ha han har hon hur i inte jag kan man med min
                mina mitt nar och om oss pa sin som till vad var vem vi ar""",
            "danish": """af at de den der det du eller en er et for fra han har hun hvad hvem hvor hvornar
                hvordan i ikke jeg kan man med men min mine mit mig nar og om os pa sin som til var vi""",
            "norwegian": """av at de den der det du eller en er et for fra han har hun hva hvem hvor hvordan i ikke
                jeg kan man med men min mine mitt meg nar og om oss pa sin som til var vi""",
            "finnish": """ei eivat etta hanen hanella han he ja jos joka kuin kuka kun me milloin mika minun
                minulla mina missa mita mutta on ovat se sen sina tai tama""",
            "polish": """ale ani bo byc byl byla co czy dla do gdzie go i ich ile ja jak jaka jaki jakie jego jej
                jest kiedy kto ktora ktory lub ma mam mnie moj moja na nie od oraz po pod przez sa sie
                ta tak to w z za ze""",
            "turkish": """ama ben benim bir biz bu cok da daha de degil gibi hangi icin ile kim mi nasil ne neden
                nerede o onun sen siz var ve veya yok""",
            "romanian": """acest aceasta al ale am are au ca care ce cu cum cand de din ea ei el este eu fi in la
                lui mai mea meu nu pe pentru sa sau se si sunt un una unde""",
            "hungarian": """a az egy es ez hogy hol is ki kinek mi mikor mint miert nem o meg van vagy volt""",
            "czech": """ale ani co do ho i ja jak jaka jaky je jeho jeji jsem jsou kde kdo kdy ktera ktery ma me
                mi muj na ne nebo o od po pro s se si to u v ve z za ze""",
        }.items()
    }
)
"""The stop words of languages in Latin letters, besides English."""

_ALSO_ENGLISH = frozenset(
    """das de del des di dos du el las le les los von a al all also am an and are as at be but by can care come
    con da den der die do e dies for from had ha he her him his hat hun i in is it la list log ma man me mi
    mine most mit o of on once or our over pa pas per por son she so some sin si te ten the their them they
    this to too tu u under up us van via vi war was we were what when where who with you your""".split()
)
_TELLING = {
    language: frozenset(word.encode() for word in stops - _ALSO_ENGLISH if len(word) > 1)
    for language, stops in STOPS.items()
}
_ANY = frozenset().union(*_TELLING.values())
_SCRIPTS = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u04ff", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)


def of_script(word: str) -> str | None:
    """The language to stem a word in by its script; none for Latin letters, and for scripts without a stemmer.

    >>> of_script("\u043a\u043e\u0442"), of_script("cat")
    ('russian', None)
    """
    first = word[:1]
    return next((language for start, end, language in _SCRIPTS if start <= first <= end), None)


def of_text(said: Sequence[bytes], english: Iterable[bytes]) -> str:
    """The language of a stored text by its words; English in doubt, since a text that is stemmed as what it is not is
    found worse than one that is hardly stemmed. ``english`` are the stop words of English.

    >>> of_text(b"die katze ist krank".split(), set())
    'german'
    >>> of_text(b"she lives in rue de la paix".split(), {b"she", b"in"})
    'english'
    """
    if _ANY.isdisjoint(said):
        return ENGLISH
    language, hits = max(_counts(said).items(), key=lambda pair: pair[1])
    return language if hits >= max(1, 2 * sum(map(frozenset(english).__contains__, said))) else ENGLISH


def of_question(said: Sequence[bytes], english: Iterable[bytes]) -> tuple[str, ...]:
    """The languages that a question may be in besides English, as few words as it has: none if it is English for sure,
    all if nothing tells.

    >>> of_question(b"wo wohnt anna".split(), set()), of_question(b"where is anna".split(), {b"where", b"is"})
    (('german',), ())
    """
    plain = sum(map(frozenset(english).__contains__, said))
    counts = _counts(said)
    most = max(counts.values())
    if most and most >= plain:
        return tuple(language for language, count in counts.items() if count == most)
    return () if plain else tuple(STOPS)


def _counts(said: Sequence[bytes]) -> dict[str, int]:
    return {language: sum(map(stops.__contains__, said)) for language, stops in _TELLING.items()}
