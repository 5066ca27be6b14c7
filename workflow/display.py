"""What a run is doing and how long it will take, beside what Snakemake prints of it.

On a terminal a block of lines that is written anew each second; elsewhere a line now and then.
After a failure the log's path and its last lines, once. `--no-hooks` switches it off.
"""

import time
from datetime import datetime, timedelta
from graphlib import TopologicalSorter
from pathlib import Path
from shutil import get_terminal_size
from threading import Event, RLock, Thread

from snakemake.logging import logger

from manybody.config.time_left import Job, finish, pace, seconds
from manybody.files.store import FETCHED
from manybody.runtime.progress import last_lines, last_progress

EACH = 30.0  # seconds between two lines where there is no terminal
SHORT = 2.0  # seconds in which a job ends that finds its results in the store
JOBS, LINES = 8, 20  # running jobs that are shown; lines of the log of one that failed


class Plan:
    """The jobs that a run has to do, with estimates of their seconds."""

    def __init__(self, workflow):
        dag, config = workflow.dag, workflow.globals["config"]
        # Jobs without a log only gather files.
        jobs = {job for job in dag.needrun_jobs(exclude_finished=False) if job.log}
        self.after = {job: jobs & set(dag.dependencies[job]) for job in jobs}
        self.jobs = list(TopologicalSorter(self.after).static_order())
        logs = Path(config["results"], "logs")
        names = [str(Path(job.log[0]).relative_to(logs).with_suffix("")) for job in self.jobs]
        found = seconds(config, zip(names, (Path(job.output[0]) for job in self.jobs), strict=True))
        self.expected = {job: took for job, (took, _) in zip(self.jobs, found, strict=True)}
        self.ran_here = sum(here for _, here in found)
        self.stage = {job: name.partition("/")[0] for job, name in zip(self.jobs, names, strict=True)}
        # On a cluster so many jobs run at a time, whatever cores each asks for.
        self.cores = workflow.nodes or workflow.cores
        self.threads = {job: 1 if workflow.nodes else job.threads for job in self.jobs}

    def left(self, running: dict, took: dict, fetched: set) -> float:
        """Seconds until all is done.

        running: seconds since each job started; took: those of each finished one; fetched: those
        that found their results in the store, as will what needs nothing but their results.
        """
        known = {job: true for job, true in took.items() if job not in fetched}
        # What a running job has taken beyond what was expected is known already.
        known |= {job: since for job, since in running.items() if since > self.expected[job]}
        slower = pace((self.stage[job], self.expected[job], true) for job, true in known.items())
        short, jobs = set(fetched), {}
        for job in self.jobs:
            if job in took:
                continue
            left = self.expected[job] * slower(self.stage[job])
            if job in running:
                since = running[job]
                left = max(left - since, since / 10)
                if said := last_progress(job.log[0], since):
                    # At its end a job knows better than the estimate, at its start it does not.
                    left = said.share * said.left + (1 - said.share) * left
            elif self.after[job] and self.after[job] <= short:
                left = SHORT
                short.add(job)
            jobs[job] = Job(left, self.threads[job], job.priority, job in running)
        return finish(jobs, self.after, self.cores)


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
        self.started, self.took, self.fetched, self.failed = {}, {}, set(), set()
        self.over, self.block, self.thread = Event(), None, None

    def start(self) -> None:
        """To be called when the jobs are known and none has started."""
        self.begin = self.last = time.monotonic()
        self.plan = Plan(self.workflow)
        quiet = {kind.name for kind in self.workflow.output_settings.quiet or ()}
        for handler in logger.handlers:
            if handler.name == "DefaultStreamHandler" and handler.is_tty and not quiet:
                self.block = handler.stream = Block(handler.stream)
        self.thread = Thread(target=self._follow, daemon=True)
        self.thread.start()

    def end(self) -> None:
        """To be called when no job runs any more."""
        if self.thread:
            self.over.set()
            self.thread.join()
            self._look()
            if self.block:
                self.block.show([])

    def _follow(self) -> None:
        said = self.begin
        while not self.over.wait(1.0):
            self._look()
            if self.block:
                self.block.show(self.lines())
            elif self.last - said >= EACH:
                said = self.last
                logger.info("; ".join(map(str.strip, self.lines())))

    def _look(self) -> None:
        """What has started, ended or failed since the last look."""
        scheduler, now = self.workflow.scheduler, time.monotonic()
        for job in self.plan.jobs:
            if job not in self.took and self.workflow.dag.finished(job):
                self.took[job] = now - self.started.pop(job, self.last)
                if any(line.startswith(FETCHED) for line in last_lines(job.log[0])):
                    self.fetched.add(job)
        for job in self._single(scheduler.running):
            if job in self.plan.expected and job not in self.took:
                self.started.setdefault(job, now)
        for job in self._single(scheduler.failed):
            if job not in self.failed:
                self.failed.add(job)
                self.started.pop(job, None)
                for log in job.log:
                    end = last_lines(log)[-LINES:] or ["it is empty, or was not written"]
                    logger.error("\n".join([f"Logfile {log} ends:", *end]))
        self.last = now

    def _single(self, jobs: set) -> list:
        """The jobs themselves, where several run as a group."""
        return [job for one in list(jobs) for job in (one.jobs if one.is_group() else [one])]

    def lines(self) -> list[str]:
        """The whole run in a line, then the running jobs."""
        now = time.monotonic()
        running = {job: now - begin for job, begin in self.started.items()}
        left, passed = self.plan.left(running, self.took, self.fetched), now - self.begin
        until = datetime.now() + timedelta(seconds=left)
        lines = [
            f"{len(self.took)} of {len(self.plan.jobs)} jobs done, {passed / (passed + left):.0%} "
            f"of the time; about {span(left)} left, until {until:%H:%M}"
        ]
        for job, since in list(running.items())[:JOBS]:
            said = last_progress(job.log[0], since)
            lines.append(f"  {job.message or job.rule.name}: {said.text if said else span(since)}")
        more = len(running) - JOBS
        return [*lines, f"  and {more} more"] if more > 0 else lines


def span(seconds: float) -> str:
    """A length of time in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
