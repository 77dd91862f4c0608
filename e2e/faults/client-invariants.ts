import { type Call, callsOf, type Effect, entriesOf, type History, type Violation } from './history.ts';

/** Invariants for clients and agents. Each function returns the violations of one invariant. */

const ended = new Set(['succeeded', 'failed', 'cancelled', 'interrupted', 'expired']);

/** The writes of a key, except the refused ones. */
class Writes {
  readonly #sent = new Map<string, { sent: number; acknowledged: number | null }>();
  /** When writes were acknowledged, in order, each with the latest send time of the writes acknowledged until then. */
  readonly #floors: { acknowledged: number; sent: number }[] = [];

  constructor(calls: readonly Call[]) {
    for (const { invoked, outcome } of calls) {
      if (invoked.request.kind !== 'write' || outcome?.type === 'refused') continue;
      const acknowledged = outcome?.type === 'succeeded' ? outcome.at : null;
      this.#sent.set(invoked.request.value, { sent: invoked.at, acknowledged });
      if (acknowledged !== null) this.#floors.push({ acknowledged, sent: invoked.at });
    }
    this.#floors.sort((one, other) => one.acknowledged - other.acknowledged);
    let latest = Number.NEGATIVE_INFINITY;
    for (const floor of this.#floors) {
      latest = Math.max(latest, floor.sent);
      floor.sent = latest;
    }
  }

  /** Reports whether a read that was sent and answered at these times may return the value; null means no value. */
  mayRead(value: string | null, sent: number, answered: number): boolean {
    const floor = this.#floorBefore(sent);
    if (value === null) return floor === Number.NEGATIVE_INFINITY;
    const write = this.#sent.get(value);
    if (write === undefined || write.sent >= answered) return false;
    // A write whose outcome is unknown may take effect at any later time.
    return write.acknowledged === null || write.acknowledged >= floor;
  }

  /** Returns the latest send time of the writes acknowledged before `at`; negative infinity if there are none. */
  #floorBefore(at: number): number {
    let [low, high] = [0, this.#floors.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#floors[middle]!.acknowledged < at) low = middle + 1;
      else high = middle;
    }
    return this.#floors[low - 1]?.sent ?? Number.NEGATIVE_INFINITY;
  }
}

/**
 * Invariant: a read returns the value of a write that nothing has replaced. A write whose outcome is unknown may take
 * effect at any time after it was sent, or never.
 */
export function lostWrites(history: History): Violation[] {
  const ofKey = Map.groupBy(callsOf(history), ({ invoked: { request } }) => ('key' in request ? request.key : null));
  ofKey.delete(null);
  return [...ofKey].flatMap(([key, calls]) => {
    const writes = new Writes(calls);
    return calls.flatMap(({ invoked, outcome }) => {
      if (invoked.request.kind !== 'read' || outcome?.type !== 'succeeded') return [];
      const value = outcome.value ?? null;
      if (writes.mayRead(value, invoked.at, outcome.at)) return [];
      const message = `${invoked.replica} answered ${value} for ${key}, call ${invoked.call}`;
      return [{ invariant: 'nothing acknowledged is lost', message }];
    });
  });
}

/** Invariant: an operation ends once, and every replica shows the same end. */
export function secondEnds(history: History): Violation[] {
  const ends = new Map<string, { status: string; finished: number | null; answered: number }>();
  const violations: Violation[] = [];
  for (const seen of entriesOf(history, 'operation')) {
    const { operation, status, finished, at, answered, replica } = seen;
    const end = ends.get(operation);
    if (end === undefined) {
      if (ended.has(status)) ends.set(operation, { status, finished, answered });
      continue;
    }
    // A request that was sent before another one returned the end may return an earlier state.
    const mayBeEarlier = at <= end.answered && !ended.has(status);
    if (!mayBeEarlier && (status !== end.status || finished !== end.finished))
      violations.push({
        invariant: 'one end for each operation',
        message: `${operation} was ${end.status} (${end.finished}), then ${status} (${finished}) at ${replica}`,
      });
  }
  return violations;
}

const nameOf = ({ node, operation, token }: Effect) => `${operation ?? `token ${token}`} on ${node}`;

/** Invariant: agents execute each operation and each token at most once, and nothing of a refused request. */
export function repeatedEffects(history: History): Violation[] {
  const counts = new Map<string, { effect: Effect; count: number }>();
  for (const effect of entriesOf(history, 'effect')) {
    const known = counts.get(nameOf(effect));
    if (known) known.count++;
    else counts.set(nameOf(effect), { effect, count: 1 });
  }
  const refused = new Set(
    callsOf(history).flatMap(({ invoked: { request }, outcome }) =>
      request.kind === 'apply' && outcome?.type === 'refused' ? [request.token] : [],
    ),
  );
  return [...counts.values()].flatMap(({ effect, count }) => {
    const allowed = effect.token !== null && refused.has(effect.token) ? 0 : 1;
    return count <= allowed
      ? []
      : [{ invariant: 'no effect twice', message: `${nameOf(effect)} was executed ${count} times, not ${allowed}` }];
  });
}

/** Invariant: each successful operation was executed, and each acknowledged operation exists at the end. */
export function missingEffects(history: History): Violation[] {
  const executed = new Set<string>();
  const tokens = new Set<string>();
  for (const { node, operation, token } of entriesOf(history, 'effect')) {
    if (operation !== null) executed.add(operation);
    if (token !== null) tokens.add(`${node} ${token}`);
  }
  const last = new Map(entriesOf(history, 'operation').map((seen) => [seen.operation, seen]));
  const violations: Violation[] = [];
  const report = (message: string) => violations.push({ invariant: 'each success has its effect', message });
  const applied = new Set<string>();
  for (const { invoked, outcome } of callsOf(history)) {
    if (invoked.request.kind !== 'apply' || outcome?.type !== 'succeeded') continue;
    const { node, token } = invoked.request;
    applied.add(outcome.id!);
    const seen = last.get(outcome.id!);
    if (seen === undefined) report(`the acknowledged operation ${outcome.id} is missing`);
    else if (!ended.has(seen.status)) report(`the operation ${outcome.id} is ${seen.status} at the end`);
    else if (seen.status === 'succeeded' && !tokens.has(`${node} ${token}`))
      report(`${outcome.id} succeeded, and ${node} did not execute ${token}`);
  }
  for (const { operation, status, run } of last.values())
    if (run !== null && status === 'succeeded' && !applied.has(operation) && !executed.has(operation))
      report(`${operation} succeeded, and no agent executed it`);
  return violations;
}

/** Invariant: each acknowledged run ends, with one result and at most one operation for each agent. */
export function brokenRuns(history: History): Violation[] {
  const violations: Violation[] = [];
  const report = (message: string) => violations.push({ invariant: 'runs continue', message });
  const last = new Map(entriesOf(history, 'run').map((seen) => [seen.run, seen]));
  for (const { invoked, outcome } of callsOf(history)) {
    if (invoked.request.kind !== 'run' || outcome?.type !== 'succeeded') continue;
    const seen = last.get(outcome.id!);
    if (seen === undefined) report(`the acknowledged run ${outcome.id} is missing`);
    else if (!seen.finished) report(`the run ${outcome.id} is ${seen.status} at the end`);
  }
  for (const { run, results } of last.values()) {
    const nodes = new Set(results.map(({ node }) => node));
    if (nodes.size < results.length) report(`the run ${run} has two results of one agent`);
  }
  const operations = new Map<string, string>();
  for (const { run, node, operation } of entriesOf(history, 'operation')) {
    if (run === null) continue;
    const known = operations.get(`${run} ${node}`);
    if (known !== undefined && known !== operation) report(`the run ${run} has two operations of ${node}`);
    operations.set(`${run} ${node}`, operation);
  }
  return violations;
}

/** Maximum milliseconds for which other replicas accept a session or a right after its end. */
const accessMs = 2_000;

/** Invariant: no request succeeds that was sent more than two seconds after its session or its right ended. */
export function accessAfterEnd(history: History): Violation[] {
  const ends = new Map(entriesOf(history, 'access_ended').map(({ access, at }) => [access, at]));
  return callsOf(history).flatMap(({ invoked, outcome }) => {
    const { request, at, replica } = invoked;
    if (request.kind !== 'access' || outcome?.type !== 'succeeded') return [];
    const endedAt = ends.get(request.access);
    if (endedAt === undefined || at <= endedAt + accessMs) return [];
    const message = `${replica} accepted ${request.access} ${Math.round(at - endedAt)} ms after its end`;
    return [{ invariant: 'no access after its end', message }];
  });
}

/** Invariant: each refusal comes from an orchestrator and is not an internal error. */
export const unclearRefusals = (history: History): Violation[] =>
  entriesOf(history, 'refused').flatMap(({ status, code, call }) =>
    code === 'internal' || code === 'unexpected_answer'
      ? [{ invariant: 'refusals are clear', message: `call ${call} was answered with ${status} ${code}` }]
      : [],
  );

/** Milliseconds of output at the end of a transcript that may be lost with its replica. */
const transcriptMs = 1_000;

/** Invariant: a transcript contains all output that a client received, except for the last output of the session. */
export function lostOutput(history: History): Violation[] {
  const shown = Map.groupBy(entriesOf(history, 'shown'), ({ session }) => session);
  return entriesOf(history, 'transcript').flatMap(({ session, open, text }) =>
    (shown.get(session) ?? [])
      .filter((piece) => piece.at < open - transcriptMs && !text.includes(piece.text))
      .map((piece) => ({
        invariant: 'transcripts are complete',
        message: `the transcript of ${session} lacks ${JSON.stringify(piece.text)}`,
      })),
  );
}
