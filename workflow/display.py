"""Progress of a run and the time that is left, beside what Snakemake prints of it.

On a terminal a block of lines that is written anew each second; elsewhere a line now and then.
After a failure the log's path and its last lines, once. `--no-hooks` switches it off.
"""

import time
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from pathlib import Path
from shutil import get_terminal_size
from threading import Event, RLock, Thread

from snakemake.logging import logger

from manybody.io.progress import last_lines, last_progress
from manybody.io.running import run_into
from manybody.pipeline.time_left import Plan, plan

EACH = 30.0  # seconds between two lines where there is no terminal
JOBS, LINES = 8, 20  # running jobs that are shown; lines of the log of one that failed


def named(workflow) -> tuple[dict, dict[str, set[str]]]:
    """The names of the jobs that a run of Snakemake's workflow has to do, and by name the names of
    those that each needs."""
    dag, results = workflow.dag, Path(workflow.globals["config"]["results"])
    # Jobs without a log only gather files.
    names = {
        job: str(Path(job.log[0]).relative_to(results / "logs").with_suffix(""))
        for job in dag.needrun_jobs(exclude_finished=False)
        if job.log
    }
    after = {
        name: {names[other] for other in dag.dependencies[job] if other in names}
        for job, name in names.items()
    }
    return names, after


def planned(workflow) -> tuple[Plan, dict]:
    """The plan of the jobs that a run of Snakemake's workflow has to do, and their names."""
    names, after = named(workflow)
    # Snakemake refuses to say how many cores there are where jobs go to a cluster.
    cores = workflow.nodes or workflow.cores
    changed = {name for job, name in names.items() if workflow.dag.reason(job).params_changed}
    jobs = {name: job for job, name in names.items()}
    results = Path(workflow.globals["config"]["results"])
    return plan(results, jobs, after, cores, bool(workflow.nodes), changed), names


class Block:
    """A terminal whose last lines are a block, which moves down as others write above it."""

    def __init__(self, terminal):
        self.terminal, self.lines, self.drawn = terminal, [], 0
        self.lock = RLock()

    def __getattr__(self, name):
        return getattr(self.terminal, name)

    def write(self, text: str) -> None:
        with self.lock:
            self.erase()
            self.terminal.write(text)

    def flush(self) -> None:
        """Called when a message is complete."""
        self.show(self.lines)

    def show(self, lines: list[str]) -> None:
        with self.lock:
            self.erase()
            width = get_terminal_size().columns - 1
            self.terminal.write("".join(f"{line[:width]}\n" for line in lines))
            self.terminal.flush()
            self.lines, self.drawn = lines, len(lines)

    def erase(self) -> None:
        if self.drawn:
            self.terminal.write(f"\x1b[{self.drawn}F\x1b[J")
        self.drawn = 0


class Display:
    """Follows the jobs of a workflow from `start` to `end`."""

    def __init__(self, workflow):
        self.workflow = workflow
        # Jobs by name: when each running one started, what each finished one took; which failed,
        # and which wait in the queue of a cluster.
        self.started, self.took, self.failed, self.queued = {}, {}, set(), set()
        self.over, self.block, self.held = Event(), None, ExitStack()
        self.thread = Thread(target=self._follow, daemon=True)

    def start(self) -> None:
        """To be called when the jobs are known and none has started."""
        self.last, self.begin = time.monotonic(), time.time()
        with suppress(OSError):  # where no file can be written, the first job says so
            self.held.enter_context(run_into(self.workflow.globals["config"]["results"]))
        self.plan, self.names = planned(self.workflow)
        self.job = {name: job for job, name in self.names.items()}
        quiet = {kind.name for kind in self.workflow.output_settings.quiet or ()}
        self.quiet = bool(quiet & {"ALL", "PROGRESS"})
        for handler in logger.handlers:
            if handler.name == "DefaultStreamHandler" and handler.is_tty and not self.quiet:
                self.block = handler.stream = Block(handler.stream)
        self.thread.start()

    def end(self) -> None:
        """To be called when no job runs any more."""
        self.held.close()
        if self.thread.ident:
            self.over.set()
            self.thread.join()
            self._look()
            if self.block:
                self.block.show([])

    def _follow(self) -> None:
        said = self.last
        while not self.over.wait(1.0):
            self._look()
            if self.block:
                self.block.show(self.lines())
            elif self.last - said >= EACH and not self.quiet:
                said = self.last
                logger.info("; ".join(map(str.strip, self.lines())))

    def _look(self) -> None:
        """Takes down what has started, ended or failed since the last look."""
        scheduler, now = self.workflow.scheduler, time.monotonic()
        for name, job in self.job.items():
            if name not in self.took and self.workflow.dag.finished(job):
                self.took[name] = now - self.started.pop(name, self.last)
        sent = self._named(scheduler.running) - self.took.keys() - self.started.keys()
        # Snakemake does not say when a job leaves the queue; the job begins its log then.
        self.queued = {name for name in sent if self.workflow.nodes and not self._logs(name)}
        self.started |= dict.fromkeys(sent - self.queued, now)
        for name in self._named(scheduler.failed) - self.failed:
            self.failed.add(name)
            self.started.pop(name, None)
            log = self.job[name].log[0]
            end = last_lines(log)[-LINES:] or ["nothing: it is empty, or was not written"]
            logger.error("\n".join([f"Logfile {log} ends:", *end]))
        self.last = now

    def _logs(self, name: str) -> bool:
        """True once a job has written to its log during this run."""
        log = Path(self.job[name].log[0])
        return log.is_file() and log.stat().st_mtime >= self.begin

    def _named(self, jobs: set) -> set[str]:
        """The names of jobs, also of those that run as a group."""
        alone = [job for one in list(jobs) for job in (one.jobs if one.is_group() else [one])]
        return {self.names[job] for job in alone if job in self.names}

    def lines(self) -> list[str]:
        """The whole run in a line, then the running jobs."""
        now = time.monotonic()
        running = {name: now - begin for name, begin in self.started.items()}
        reports = {name: last_progress(self.job[name].log[0], s) for name, s in running.items()}
        first = f"{len(self.took)} of {len(self.names)} jobs done"
        if self.queued:
            first += f", {len(self.queued)} in the queue"
        if self.failed:
            first += f", {len(self.failed)} failed"
        else:
            left = self.plan.left(running, reports, self.took)
            end = datetime.now() + timedelta(seconds=left)
            end = f"{end:%H:%M}" if left < 12 * 3600 else f"{end:%a %d %b %H:%M}"
            first += f", about {span(left)} left, until {end}"
            if never := len(self.plan.guessed - self.took.keys()):
                first += f" (a rough estimate: {never} of the jobs left never ran here)"
        shown = {name: said.text if said else span(running[name]) for name, said in reports.items()}
        lines = [f"  {self.job[name].message or name}: {text}" for name, text in shown.items()]
        return [first, *lines[:JOBS]]


def span(seconds: float) -> str:
    """A length of time in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
