"""Search in other languages than English: stems, stop words, scripts without spaces, dates."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.stand_ins import Opener, somebody
from wellkept import Memories, NewMemory, View
from wellkept.testing.cases import Cases

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
FILLER = ["The printer only works over USB", "We chose NATS over Kafka", "Deployments happen on Tuesdays"]


@pytest.fixture
def memories(ram_opener: Opener) -> Memories:
    return ram_opener()


@pytest.fixture
def notes(memories: Memories) -> View:
    return memories.view(user="ada")


FORMS: tuple[tuple[str, list[str]], ...] = (
    ("Meine Katzen schlafen auf dem Sofa", ["Wo schläft die Katze?", "Katze", "Was ist mit den Katzen?"]),
    ("Unsere Häuser sind alle verkauft", ["Wann wurde das Haus verkauft?", "verkaufte Häuser"]),
    ("Les chevaux mangent des pommes", ["Que mange le cheval ? Une pomme ?", "pommes"]),
    ("Mis hermanas viven en Madrid", ["¿Dónde vive mi hermana?", "hermana"]),
    ("Le mie sorelle abitano a Roma", ["Dove abita mia sorella?"]),
    ("As minhas reuniões são em Lisboa", ["Onde é a minha reunião em Lisboa?", "Lisboa"]),
    ("Mijn katten slapen op de bank", ["Waar slaapt de kat? Op een bank?", "katten"]),
    ("Мои кошки спят на диване", ["Где спит кошка на диване?", "кошка"]),
    ("Οι γάτες κοιμούνται", ["γάτα", "γάτες"]),
)


@pytest.mark.req("L4", "L15")
def test_forms_of_a_word_meet_in_their_language(memories: Memories) -> None:
    with Cases() as cases:
        for content, questions in FORMS:
            with cases.case(content):
                notes = somebody(memories)
                notes.add_many([*FILLER, content])
                for question in questions:
                    assert [hit.memory.content for hit in notes.search(question)][:1] == [content], question


@pytest.mark.req("L4")
def test_a_question_in_another_language_finds_names_and_shared_words(notes: View) -> None:
    notes.add_many([*FILLER, "Peters Hund heißt Bello und ist alt", "Maya uses Kubernetes in Frankfurt"])
    assert notes.search("Was macht Maya mit Kubernetes?").hits[0].memory.content == "Maya uses Kubernetes in Frankfurt"
    assert notes.search("What is the name of Bello?").hits[0].memory.content.startswith("Peters Hund")


PARTS_OF_TEXTS: tuple[tuple[str, str], ...] = (
    ("她最喜欢的颜色是深蓝色", "深蓝"),
    ("我在上海工作，住在北京", "上海有什么?"),
    ("猫が魚を食べました", "魚を食べたのは?"),
    ("東京に住んでいます", "東京"),
    ("แมวของฉันชอบกินปลา", "กินปลา"),
    ("서울에서 일합니다", "서울"),
    ("मेरी बिल्ली दूध पीती है", "बिल्ली"),
    ("我的猫很可爱", "猫"),
)


@pytest.mark.req("L4", "L15")
def test_scripts_without_spaces_are_found_by_parts_of_a_text(memories: Memories) -> None:
    with Cases() as cases:
        for content, question in PARTS_OF_TEXTS:
            with cases.case(content):
                notes = somebody(memories)
                notes.add_many([*FILLER, "这是另一件事", "これは別の話です", content])
                assert [hit.memory.content for hit in notes.search(question)][:1] == [content]


@pytest.mark.req("L4")
def test_a_phrase_of_a_script_without_spaces_stands_where_it_stands(notes: View) -> None:
    notes.add_many(["我喜欢深色模式", "模式是深色的", *FILLER])
    [first, *others] = notes.search('"深色模式"', explain=True).hits
    assert first.memory.content == "我喜欢深色模式"
    assert "phrase" in first.reasons
    assert not any("phrase" in hit.reasons for hit in others)


TIMES: tuple[tuple[str, int], ...] = (
    ("Was habe ich gestern gemacht?", 1),
    ("Was ist letzte Woche passiert?", 9),
    ("vor drei Tagen", 3),
    ("Qu'est-ce que j'ai fait hier ?", 1),
    ("Que s'est-il passé la semaine dernière ?", 9),
    ("il y a trois jours", 3),
    ("¿Qué hice ayer?", 1),
    ("¿Qué pasó la semana pasada?", 9),
    ("hace tres días", 3),
    ("Cosa ho fatto ieri?", 1),
    ("Cos'è successo la settimana scorsa?", 9),
    ("tre giorni fa", 3),
    ("O que fiz ontem?", 1),
    ("O que aconteceu na semana passada?", 9),
    ("Wat heb ik gisteren gedaan?", 1),
    ("Wat gebeurde er vorige week?", 9),
    ("drie dagen geleden", 3),
    ("Was war im Februar?", 40),
    ("Que s'est-il passé en février ?", 40),
    ("Was war am 8. Februar 2026?", 40),
)


@pytest.mark.req("L4")
def test_times_in_other_languages(notes: View) -> None:
    notes.add_many(
        [NewMemory(content=f"day {ago}", occurred_at=NOW - timedelta(days=ago)) for ago in (1, 3, 9, 40, 99)]
    )
    with Cases() as cases:
        for question, days_ago in TIMES:
            with cases.case(question):
                assert notes.search(question, asked_at=NOW).hits[0].memory.content == f"day {days_ago}"
