import type { LookupFunction } from 'node:net';
import { type AgentAddress, addressText } from '@muster/protocol/agent-address';
import { type Announcement, limits, type Welcome } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import type { Link } from '../host/firewall/trial.ts';
import type { SampleBuffer } from '../metrics/sample-buffer.ts';
import type { Terminals } from '../terminal/terminals.ts';
import { backOff, type LinkEnd, noWaits, type Waits } from './backoff.ts';
import { canConnect } from './can-connect.ts';
import { Candidates } from './candidates.ts';
import { type Dialled, dial, WrongOrchestratorError } from './dial.ts';
import { fitAttributes, type Introduction, makeHello } from './hello.ts';
import type { AgentIdentity, ShownKey } from './identity.ts';
import { addressesOf, type OrchestratorFile, type Target } from './pin.ts';
import { type ConnectedEngine, Session } from './session.ts';

export interface ConnectionOptions {
  identity: AgentIdentity;
  introduction: Introduction;
  /** Null if the orchestrator's address is unknown. The agent then waits for an announcement. */
  target: Target | null;
  file: OrchestratorFile;
  engine: ConnectedEngine;
  /** Null for a simulated agent. */
  terminals: Terminals | null;
  /** Samples to send if the orchestrator requests them; null for a simulated agent. */
  samples: SampleBuffer | null;
  clock: Clock;
  log: Log;
  random: () => number;
  /** Returns the current attributes. Called for each hello. */
  attributes: () => Record<string, string>;
  /** Resolves the orchestrator's host name. Defaults to the system resolver. */
  lookup?: LookupFunction;
  /** Called when the link comes up or goes down. */
  linked?: (isUp: boolean) => void;
}

/** Refusals that only an operator can resolve, so early retries are pointless. */
const permanentRefusals: ReadonlySet<string> = new Set(['cloned', 'token_invalid', 'version_unsupported']);
const permanentRetrySecs = 60;
/** Number of consecutive refusals after which the first pending report is assumed to be their cause. */
const suspectRefusals = 3;

/** Maintains a link to the orchestrator while the agent runs. */
export class Connection {
  private readonly options: ConnectionOptions;
  /** The orchestrator that the agent belongs to; null until it is known. */
  private home: Target | null;
  /** Announced orchestrators, tried in turn until one accepts this agent. */
  private readonly candidates = new Candidates();
  private target: Target | null = null;
  private isLinked = false;
  private readonly stopping = new AbortController();
  private session: Session | null = null;
  private running: Promise<void> | null = null;
  private wake: () => void = () => {};
  /**
   * The report that was first in the queue at the last protocol violation, and the number of consecutive violations
   * with this report.
   */
  private suspect = { seq: 0, refusals: 0 };
  /** Whether the last link was closed to present a new key. */
  private isRenewing = false;
  /** Number of failed attempts. Each attempt begins with the next address to which the orchestrator's name resolves. */
  private failures = 0;
  /** Index of the orchestrator's address to dial next. */
  private turn: number;
  private lastWrongKey: string | null = null;

  constructor(options: ConnectionOptions) {
    this.options = options;
    this.home = options.target === null ? null : { ...options.target };
    // Random, so that agents spread over all addresses.
    const count = this.home === null ? 1 : addressesOf(this.home, 0).length;
    this.turn = Math.floor(options.random() * count);
  }

  /** The key that the orchestrator must have, in hexadecimal; null if any key is accepted. */
  get pinnedKey(): string | null {
    return this.home?.orchestrator_key ?? null;
  }

  /** Returns the link to the known orchestrator; null if none is known. */
  orchestratorLink(): Link | null {
    if (this.home === null) return null;
    const { clock, lookup } = this.options;
    const addresses = addressesOf(this.home, this.turn);
    return {
      address: addresses.map(addressText).join(', '),
      canConnect: async () =>
        (await Promise.all(addresses.map((address) => canConnect(address, clock, lookup)))).includes(true),
    };
  }

  /** Handles an announcement of an orchestrator. If its key is acceptable, the orchestrator becomes the next target. */
  announced({ host, port, orchestratorKey }: Announcement): void {
    if (this.isLinked) return;
    const key = Buffer.from(orchestratorKey).toString('hex');
    if (this.pinnedKey !== null && this.pinnedKey !== key) return;
    // A token is only for the known orchestrator and is never sent to an announced one.
    const { token, pinSource } =
      this.home?.orchestrator_key === key ? this.home : { token: null, pinSource: 'discovery' as const };
    const candidate: Target = { host, port, orchestrator_key: key, token, addresses: [], pinSource, replacedKey: null };
    if (this.candidates.add(candidate)) this.wake();
  }

  /** Starts to connect, and returns immediately. */
  start(): void {
    this.running ??= this.run();
  }

  /** Sends a bye and disconnects permanently. */
  async stop(reason: string): Promise<void> {
    this.stopping.abort();
    this.wake();
    await this.session?.leave(reason);
    await this.running;
  }

  reportsReady(): void {
    this.session?.reportsReady();
  }

  outputReady(): void {
    this.session?.outputReady();
  }

  contentsWanted(): void {
    this.session?.contentsWanted();
  }

  attributesChanged(): void {
    this.session?.sendAttributes(fitAttributes(this.options.attributes()));
  }

  /** Sends a hint that applied resources have changed. @returns false if the link is down */
  hintDrift(keys: string[]): boolean {
    return this.session?.hintDrift(keys) ?? false;
  }

  /** Reconnects to present a new key. Waits while terminals are open, because they close with the link. */
  keysChanged(): void {
    const { identity, terminals, log } = this.options;
    try {
      if (!identity.hasNext()) return;
    } catch (error) {
      log.error({ error }, 'failed to read the new key; keeping the current one');
      return;
    }
    if (!this.isLinked || this.session === null) {
      this.wake();
      return;
    }
    if (this.session.version < 4) {
      log.warn({}, 'the orchestrator does not support key changes; keeping the current key');
      return;
    }
    const open = terminals?.open ?? 0;
    if (open > 0) {
      log.info({ terminals: open }, 'key change delayed until all terminals are closed');
      return;
    }
    this.isRenewing = true;
    // Requests that the orchestrator reserve the agent's slot. Otherwise, someone who stole the previous key could
    // present a different key while the agent reconnects.
    void this.session.leave('to present a new key', true);
  }

  /** Returns the key for a hello. If a new key cannot be read, uses the current key. */
  private keyToShow(versions: readonly number[], orchestratorKey: string): ShownKey {
    const { identity, log } = this.options;
    try {
      return identity.toShow(versions, orchestratorKey);
    } catch (error) {
      log.error({ error }, 'failed to read the new key; keeping the current one');
      return identity.inForce();
    }
  }

  private async run(): Promise<void> {
    const { log, clock, random } = this.options;
    // Retries quickly if the agent's orchestrator is known, because after a power failure, agents and orchestrator
    // start together.
    let backoffState: Waits = this.home === null ? noWaits : { ...noWaits, linkedAt: clock.monotonic() };
    while (!this.stopping.signal.aborted) {
      const target = this.candidates.next(this.home);
      if (target === null) {
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
        continue;
      }
      this.target = target;
      const end = await this.link(target);
      if (this.isLinked) this.setLinked(false);
      if (this.stopping.signal.aborted) return;
      if (this.isRenewing) {
        this.isRenewing = false;
        continue;
      }
      const next = backOff(backoffState, end, random(), clock.monotonic());
      backoffState = next.waits;
      log.info({ reason: end.reason, retry_in_ms: Math.round(next.waitMs) }, 'not connected');
      if (this.candidates.hasNew) continue;
      await new Promise<void>((resolve) => {
        const cancelWait = clock.after(next.waitMs, resolve);
        this.wake = () => {
          cancelWait();
          resolve();
        };
      });
    }
  }

  private setLinked(isUp: boolean): void {
    this.isLinked = isUp;
    this.options.linked?.(isUp);
  }

  /**
   * Dials the orchestrator's addresses in turn, each once, until another orchestrator is announced.
   * @throws the error of the last address dialed
   */
  private async dialTarget(target: Target): Promise<{ dialled: Dialled; address: AgentAddress }> {
    const { clock, log, lookup } = this.options;
    const { signal } = this.stopping;
    const addresses = addressesOf(target, this.turn);
    for (const [index, address] of addresses.entries()) {
      try {
        const to = { ...address, pin: target.orchestrator_key, turn: this.failures };
        return { dialled: await dial(to, clock, signal, lookup), address };
      } catch (error) {
        this.turn++;
        if (error instanceof WrongOrchestratorError) this.logWrongKey(target, address, error.shownKey);
        if (index === addresses.length - 1 || signal.aborted || this.candidates.hasNew) throw error;
        log.info({ ...address, reason: (error as Error).message }, 'cannot connect; trying the next address');
      }
    }
    throw new Error('the orchestrator has no address');
  }

  /** Tries to connect once. If it succeeds, runs the link until it closes. */
  private async link(target: Target): Promise<LinkEnd & { reason: string }> {
    const { engine, terminals, clock, log, identity, introduction } = this.options;
    try {
      const { dialled, address } = await this.dialTarget(target);
      if (this.stopping.signal.aborted) {
        dialled.ws.terminate();
        throw new Error('cancelled');
      }
      const shownKey = dialled.orchestratorKey.toString('hex');
      if (target.orchestrator_key === null)
        log.warn(
          { ...address, orchestrator_key: shownKey },
          'no orchestrator key is pinned; trusting the first one seen; compare it with the key that the orchestrator prints',
        );
      else if (target.pinSource === 'discovery')
        log.warn(
          { ...address, orchestrator_key: shownKey },
          'no orchestrator key is pinned; trusting the one announced on the network; compare it with the key that the orchestrator prints',
        );
      let shown = identity.inForce();
      let offeredVersions: readonly number[] = [];
      const session = new Session({
        dialled,
        engine,
        terminals,
        samples: this.options.samples,
        clock,
        log,
        random: this.options.random,
        hello: (nonce, versions) => {
          offeredVersions = versions;
          shown = this.keyToShow(versions, shownKey);
          return makeHello(
            shown,
            introduction,
            { exporter: dialled.exporter, nonce, orchestratorKey: dialled.orchestratorKey },
            {
              pinSource: target.pinSource,
              token: target.token,
              attributes: this.options.attributes(),
              openOperations: engine.openOperations(),
              clockMs: versions.includes(2) ? clock.now() : null,
            },
          );
        },
        welcomed: (welcome) => {
          this.keyWelcomed(shown, welcome.node_id);
          this.welcomed(welcome, shownKey, address);
          // Called only if a key was created after the hello. If switching to a key failed, the key is presented on the
          // next link.
          if (identity.inForce().key === shown.key) this.keysChanged();
        },
        statusChanged: (status) => this.logStatus(status),
      });
      this.session = session;
      const end = await session.run();
      this.session = null;
      // This address may lead to a replica that is being drained.
      this.turn++;
      if (end.refused === 'key_unknown') this.keyUnknown(shown, shownKey);
      if (end.refused === 'key_refused' && this.keyRefused(shown, shownKey, offeredVersions))
        return { ...end, retryAfterSecs: permanentRetrySecs };
      if (end.refused !== null && permanentRefusals.has(end.refused) && end.retryAfterSecs === null)
        return { ...end, retryAfterSecs: permanentRetrySecs };
      if (end.refused === 'protocol_violation' && this.suspectReport(end.reason))
        return { ...end, retryAfterSecs: limits.reconnectCapMs / 1000 };
      return end;
    } catch (error) {
      this.session = null;
      this.failures++;
      if (error instanceof WrongOrchestratorError) this.candidates.drop(target);
      return { livedMs: 0, retryAfterSecs: null, refused: null, reason: (error as Error).message };
    }
  }

  private keyWelcomed(shown: ShownKey, nodeId: string | undefined): void {
    const { identity, log } = this.options;
    try {
      if (identity.welcomed(shown, nodeId))
        log.info({ event: 'key_changed', key: shown.key.publicKey.toString('hex') }, 'agent key changed');
    } catch (error) {
      log.error({ error }, 'failed to save the new key as the current one; will present it again on the next link');
    }
  }

  /** Handles a refusal of the key. @returns whether later hellos will also be refused until an operator intervenes */
  private keyRefused(shown: ShownKey, orchestratorKey: string, versions: readonly number[]): boolean {
    const { log } = this.options;
    if (this.dropNext(shown)) return false;
    // Earlier orchestrator releases also send this refusal for unknown keys.
    if (!versions.includes(5)) {
      this.keyUnknown(shown, orchestratorKey);
      return false;
    }
    // Without the statement, the agent would enroll as a new agent and lose its name, tags, and secrets.
    log.error(
      {},
      'the orchestrator knows this agent but rejects its key; the agent keeps its identity and retries every minute. If this machine is the legitimate one, remove the agent on the orchestrator; this machine then enrolls as a new agent',
    );
    return true;
  }

  private keyUnknown(shown: ShownKey, orchestratorKey: string): void {
    if (this.dropNext(shown)) return;
    this.options.identity.unknownTo(orchestratorKey);
    this.options.log.warn({}, "the orchestrator does not know any of this agent's keys; enrolling as a new agent");
  }

  /** Drops the key that this connection presented if it was a new key. @returns whether it was a new key */
  private dropNext(shown: ShownKey): boolean {
    const { identity, log } = this.options;
    try {
      const isNew = identity.refused(shown);
      if (isNew) log.error({}, 'the orchestrator refused the new key; keeping the previous key');
      return isNew;
    } catch (error) {
      log.error({ error }, 'failed to drop the new key that the orchestrator refused');
      return true;
    }
  }

  /**
   * Counts a violation against the first unacknowledged report. Never discards the report, because another version of
   * the orchestrator may accept it.
   * @returns whether to retry slowly, because the next attempt is likely to fail too
   */
  private suspectReport(reason: string): boolean {
    const [entry] = this.options.engine.spool.pending(0);
    const seq = entry?.seq ?? 0;
    this.suspect = { seq, refusals: seq === this.suspect.seq ? this.suspect.refusals + 1 : 1 };
    const { refusals } = this.suspect;
    if (entry === undefined || refusals < suspectRefusals) return false;
    // Logs this rarely, because an unattended agent may repeat it for months.
    if (refusals % 60 === suspectRefusals)
      this.options.log.error(
        {
          seq,
          operation_ids: [...new Set(entry.reports.map((report) => report.operation_id))],
          reports: [...new Set(entry.reports.map((report) => report.type))],
          bytes: entry.bytes,
          refusals,
          reason,
        },
        'the orchestrator keeps closing the link after this report or the next one; holding back later reports and retrying every minute',
      );
    return true;
  }

  /** Logs each wrong key once, because an agent may wait for its orchestrator for months. */
  private logWrongKey({ orchestrator_key: pinned }: Target, { host, port }: AgentAddress, shown: string): void {
    if (this.lastWrongKey === shown) return;
    this.lastWrongKey = shown;
    this.options.log.warn(
      { host, port, shown, pinned },
      `the peer is not this agent's orchestrator and may be an impostor; nothing was sent to it. If your orchestrator has a new key, first compare the key shown here with the output of \`muster status\` on its machine, then run: muster agent connect ${host}:${port} --orchestrator-key KEY`,
    );
  }

  private welcomed(welcome: Welcome, shownKey: string, address: AgentAddress): void {
    const { log, file, identity } = this.options;
    const target = this.target!;
    // The orchestrator has consumed the token.
    target.token = null;
    target.orchestrator_key = shownKey;
    target.addresses = welcome.addresses ?? [];
    this.lastWrongKey = null;
    target.pinSource = target.pinSource === 'flag' ? 'flag' : 'pinned';
    this.home = target;
    this.candidates.clear();
    this.setLinked(true);
    try {
      file.write(target);
    } catch (error) {
      log.error(
        { error },
        'failed to save the connection; without a saved or configured key, the next start will trust the first key that it sees',
      );
    }
    log.info({ event: 'connected', node_id: identity.nodeId, ...address }, 'connected');
    this.logStatus(welcome);
  }

  private logStatus({ status, name }: Pick<Welcome, 'status' | 'name'>): void {
    const { log, identity } = this.options;
    if (status === 'approved') log.info({ name }, 'agent approved');
    else
      log.info(
        { node_id: identity.nodeId },
        `this agent is waiting for approval; approve it with: muster agents approve ${identity.nodeId} --name NAME`,
      );
  }
}
