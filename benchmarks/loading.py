"""How long searches of one owner take while another owner's memories are loaded into the index.

    python benchmarks/loading.py --folder /a/folder/on/the/disk/that/matters

One thread searches a small owner again and again; meanwhile another thread searches a large owner for the first time
in this process. The large index is made from the journal in the first round of a pair, and read from the image that
was kept of it in the second. A machine that does other work as well adds its own pauses: those show in the line that
says what the same searches take when nothing is loaded.
"""

import argparse
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import wellkept
from wellkept import NewMemory

OWN, LOADED, BATCH = 200, 20_000, 1_000
ROUNDS = 5
GOAL_MS = 20.0
QUESTION = "What does the customer say about the invoice?"
THINGS = ("invoice", "delivery", "password", "refund", "garden", "meeting", "train", "contract")


def texts(count: int, who: str) -> list[NewMemory]:
    """Remarks of about a dozen words, no two of them alike."""
    said = "{who} {number} says that the {thing} of week {week} was late again"
    return [
        NewMemory(content=said.format(who=who, number=number, thing=THINGS[number % 8], week=number % 53))
        for number in range(count)
    ]


def fill(file: Path) -> None:
    """Store the memories of both owners; no index is made."""
    with wellkept.open(file) as memories:
        memories.view(user="ada").add_many(texts(OWN, "Ada"))
        large = texts(LOADED, "Bob")
        for start in range(0, LOADED, BATCH):
            memories.view(user="bob").add_many(large[start : start + BATCH])


def searched(view: wellkept.View, until: threading.Event) -> list[float]:
    """The times of searches in milliseconds, one after the other until the event."""
    times = []
    while not until.is_set():
        started = time.perf_counter()
        view.search(QUESTION)
        times.append((time.perf_counter() - started) * 1000)
    return times


def during(file: Path, *, load: bool) -> tuple[float, list[float]]:
    """How long loading took in milliseconds, and the searches of the small owner meanwhile; without loading those of
    a second.
    """
    with wellkept.open(file) as memories:
        small, large = memories.view(user="ada"), memories.view(user="bob")
        small.search(QUESTION)
        over, took = threading.Event(), [0.0]

        def other() -> None:
            started = time.perf_counter()
            if load:
                large.search(QUESTION)
            else:
                time.sleep(1)
            took[0] = (time.perf_counter() - started) * 1000
            over.set()

        thread = threading.Thread(target=other)
        thread.start()
        times = searched(small, over)
        thread.join()
    return took[0], times


def share(times: Sequence[float], part: float) -> float:
    """What such a part of the times does not exceed."""
    return sorted(times)[min(len(times) - 1, int(part * len(times)))]


def report(name: str, rounds: Sequence[tuple[float, list[float]]]) -> None:
    """Print one line."""
    times = [one for _, some in rounds for one in some]
    middle = share([took for took, _ in rounds], 0.5)
    late = sum(one >= GOAL_MS for one in times)
    print(
        f"{name:24} {middle:6.0f} ms  {len(times):6}  {share(times, 0.5):7.2f} {share(times, 0.95):7.2f}"
        f" {max(times):7.2f}  {late:4} {'!' if share(times, 0.95) >= GOAL_MS else ''}",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="where to measure: the disk matters")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        filled = Path(name) / "filled.db"
        fill(filled)
        kinds: dict[str, list[tuple[float, list[float]]]] = {"nothing else": [], "from the journal": [], "an image": []}
        for number in range(arguments.rounds):
            file = Path(name) / f"round-{number}.db"
            shutil.copy(filled, file)
            kinds["nothing else"].append(during(file, load=False))
            kinds["from the journal"].append(during(file, load=True))
            kinds["an image"].append(during(file, load=True))
        print(f"{'loading ' + str(LOADED):24} {'took':>9}  searches  p50 ms  p95 ms  max ms  over {GOAL_MS:.0f} ms")
        for kind, rounds in kinds.items():
            report(kind, rounds)


if __name__ == "__main__":
    main()
