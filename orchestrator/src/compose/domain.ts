import { statfs } from 'node:fs/promises';
import { MusterError } from '@muster/protocol';
import type { Logger } from 'pino';
import type { Clock } from '../../../lib/src/clock.ts';
import type { LiveWire } from '../bus/live-wire.ts';
import type { Config } from '../config/schema.ts';
import { createDeliver } from '../deliver/deliver.ts';
import { createRemoteWrite } from '../deliver/remote-write.ts';
import type { Disposables } from '../disposables.ts';
import type { AgentLinks } from '../domain/agent-link/agent-link.ts';
import { createAgentLinks } from '../domain/agent-link/agent-link-service.ts';
import { createPendingList } from '../domain/agents/pending-list.ts';
import { createRefusals, type Refusals } from '../domain/audit/refusals.ts';
import { reportSpace } from '../domain/fleet/disk-space.ts';
import { createMetrics, type Metrics } from '../domain/fleet/metrics.ts';
import { createLiveEvents } from '../domain/live/events.ts';
import { createLiveOutput } from '../domain/operations/live-output.ts';
import { createWaiting } from '../domain/operations/operation-waiting.ts';
import { createSignIn, type SignIn } from '../domain/operators/sign-in.ts';
import { createRunConductor } from '../domain/runs/run-conductor.ts';
import type { Context } from '../domain/shared/context.ts';
import { createHealth } from '../domain/shared/health.ts';
import type { Leases } from '../domain/shared/leases.ts';
import type { Shells } from '../domain/terminals/shells.ts';
import { createTerminals, type Terminals } from '../domain/terminals/terminals.ts';
import { challengeKey, type Identity } from '../identity/identity.ts';
import { type DiskGuard, startDiskGuard } from '../schedule/disk-guard.ts';
import { type RemoteWrite, startRemoteWrite } from '../schedule/remote-write.ts';
import { createRecentScreen } from '../screen/recent-screen.ts';
import { version } from '../version.ts';
import type { Addresses } from './addresses.ts';
import type { Settings } from './settings.ts';
import type { Store } from './store.ts';

export interface DomainParts {
  readonly context: Context;
  readonly leases: Leases;
  readonly store: Store;
  readonly settings: Settings;
  readonly addresses: Addresses;
  readonly shells: Shells;
  /** Carries relayed connections to terminals; null without NATS. */
  readonly wire: LiveWire | null;
  readonly identity: Identity;
  readonly dataDir: string;
  /** Milliseconds since the last heartbeat of this replica; null without replicas. */
  readonly beatAge: (() => number) | null;
  readonly clock: Clock;
  readonly log: Logger;
}

export type Domain = Awaited<ReturnType<typeof createDomain>>;

/** Creates the domain modules, and marks terminal sessions from the previous process as interrupted. */
export async function createDomain(parts: DomainParts, disposables: Disposables) {
  const { context, leases, store, settings, dataDir, clock } = parts;
  const config = settings.current;
  const health = createHealth(context, parts.beatAge);
  const terminals = createTerminalSessions(parts);
  disposables.add(() => terminals.stop());
  await terminals.interruptLeftovers();
  const refusals = createRefusals(context);
  const signIn = createSignInSessions(parts, refusals);
  if (config.sign_in.require_bound) await signIn.endUnbound();
  const pending = createPendingList(context, config.pending_capacity);
  disposables.add(() => signIn.close());
  const live = createLiveEvents(context, clock, signIn);
  disposables.add(() => live.close());
  const waiting = createWaiting(context);
  const liveOutput = createLiveOutput(context);
  disposables.add(() => liveOutput.close());
  const remoteWrite = startConfiguredRemoteWrite(context, clock, config);
  const disk = startDiskGuard(context, clock, {
    usage: async () => {
      const { bsize, blocks, bavail } = await statfs(dataDir);
      return { size: bsize * blocks, free: bsize * bavail };
    },
    reserve: () => settings.current.disk.reserve,
  });
  disposables.add(() => disk.stop());
  await disk.look();
  const metrics = createMetrics(context, store.samples, config.metrics.retention, remoteWrite?.take);
  const conductor = createRunConductor(context, { maxConcurrent: config.runs.max_concurrent, leases });
  const channelRule = settings.extend({}, { denyPrivate: ({ notifications }) => notifications.deny_private });
  return {
    context,
    health,
    terminals,
    refusals,
    signIn,
    pending,
    live,
    waiting,
    liveOutput,
    remoteWrite,
    disk,
    metrics,
    conductor,
    channelRule,
    deliver: createDeliver(
      settings.extend({ version, now: () => clock.now() }, { denyPrivate: () => channelRule.denyPrivate }),
    ),
    links: createAgentLinks(
      context,
      refusals,
      pending,
      recordSamplesUnlessDiskLow(metrics, disk, context),
      liveOutput,
      settings.extend(
        {
          get space() {
            // PostgreSQL stores rows on another disk, and returns an error when that disk is full.
            return context.db.kind === 'sqlite' ? reportSpace(disk.space) : 'ample';
          },
        },
        { dailyBytes: ({ agents }) => agents.daily_bytes },
      ),
    ),
  };
}

function createTerminalSessions({ context, store, settings, shells, wire, clock, log }: DomainParts): Terminals {
  const { transcripts } = store;
  return createTerminals(context, {
    clock,
    transcripts,
    shells,
    wire,
    recentScreen: createRecentScreen({ transcripts, clock, log }),
    rules: settings.extend(
      {},
      {
        reattachSecs: ({ terminals }) => terminals.reattach_secs,
        idleLimitSecs: ({ terminals }) => terminals.idle_limit,
        transcriptLimit: ({ terminals }) => terminals.transcript_limit,
        recordInput: ({ terminals }) => terminals.record_input,
      },
    ),
  });
}

function createSignInSessions({ context, settings, addresses, identity }: DomainParts, refusals: Refusals): SignIn {
  const rules = settings.extend(
    {
      tokenLifeSecs: settings.current.session_token_expiry_secs,
      isOwnServer: (server: string, loopback: boolean) =>
        addresses.isOwnServer(server, loopback, settings.current.sign_in.origins),
    },
    {
      requireBound: ({ sign_in }) => sign_in.require_bound,
      consoleIdleSecs: ({ sign_in }) => sign_in.console_idle_secs,
      consoleLifeSecs: ({ sign_in }) => sign_in.console_life_secs,
    },
  );
  return createSignIn(context, refusals, rules, challengeKey(identity));
}

/**
 * Refuses samples on a nearly full disk, to reserve space for other reports. Agents keep the samples and resend them.
 */
function recordSamplesUnlessDiskLow(metrics: Metrics, disk: DiskGuard, { db }: Context): AgentLinks['sampled'] {
  return async (nodeId, samples) => {
    if (disk.low && db.kind === 'sqlite')
      throw new MusterError('storage_full', 'the orchestrator’s disk is nearly full; no samples were stored');
    await metrics.record(nodeId, samples);
  };
}

/** Starts remote write. @returns null if it is not configured */
function startConfiguredRemoteWrite(context: Context, clock: Clock, config: Config): RemoteWrite | null {
  const { url, bearer_token_file, username, password_file, deny_private, queue } = config.metrics.remote_write;
  if (url === null) return null;
  const credentials =
    bearer_token_file !== null
      ? { bearerTokenFile: bearer_token_file }
      : username !== null
        ? { username, passwordFile: password_file }
        : null;
  const write = createRemoteWrite({ url, credentials, version, denyPrivate: deny_private });
  return startRemoteWrite(context, clock, { write, random: Math.random, capacity: queue });
}
