import { pino } from 'pino';
import { createDiscovery } from '../src/domain/agents/discovery.ts';
import { putOneTag } from '../src/domain/agents/tags.ts';
import { createMetrics } from '../src/domain/fleet/metrics.ts';
import { describeSettings } from '../src/domain/fleet/settings.ts';
import { createLiveEvents } from '../src/domain/live/events.ts';
import { createAssignment } from '../src/domain/modules/assignments.ts';
import { uploadModule } from '../src/domain/modules/modules.ts';
import { type AppOptions, createApp } from '../src/http/app.ts';
import { channelHandlers } from '../src/http/routes/channels.ts';
import { discoveryHandlers } from '../src/http/routes/discovery.ts';
import { driftHandlers } from '../src/http/routes/drift.ts';
import { enrollmentHandlers } from '../src/http/routes/enrollment.ts';
import { eventHandlers } from '../src/http/routes/events.ts';
import { replicaHandlers } from '../src/http/routes/fleet/replicas.ts';
import { settingsHandlers } from '../src/http/routes/fleet/settings.ts';
import { statusHandlers } from '../src/http/routes/fleet/status.ts';
import { contextHandlers } from '../src/http/routes/index.ts';
import { metricsHandlers } from '../src/http/routes/metrics.ts';
import { operationHandlers } from '../src/http/routes/operations.ts';
import { operatorHandlers } from '../src/http/routes/operators/operators.ts';
import { sessionHandlers } from '../src/http/routes/operators/sessions.ts';
import { runHandlers } from '../src/http/routes/runs.ts';
import { terminalHandlers } from '../src/http/routes/terminals.ts';
import { SessionCookie } from '../src/http/server/authentication.ts';
import { recordRefused } from '../src/http/server/refused-requests.ts';
import type { SampleStore } from '../src/store/samples/samples.ts';
import type { DatabaseFixture } from './databases/databases.ts';
import { type Domain, type Key, newAdmin, newAgent, openDomain } from './domain.ts';
import { MemoryAnnouncer } from './memory-announcer.ts';
import { MemoryShells, terminalsFixture } from './terminals.ts';

/** The whole API with the real domain and a real database. Every response is validated against its schema. */

export const moduleText =
  'name: m\nsupports: [{ platform: linux }]\nresources: [{ id: f, resource: { file-unix: { path: /f, content: x } } }]\n';

export async function tokenOf({ signIn }: Domain, key: Key): Promise<string> {
  const { nonce } = await signIn.challenge(key.hex);
  return (await signIn.verify(key.hex, key.sign(Buffer.from(nonce, 'hex')))).token;
}

/**
 * Call this while defining a suite.
 * @returns a function that opens the API with an admin, an agent, a module, and an assignment
 */
export function realApiFixture() {
  const openTerminals = terminalsFixture();
  return async (fixture: DatabaseFixture, samples: SampleStore, options: Partial<AppOptions> = {}) => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const metrics = createMetrics(context, samples, 86_400);
    const shells = new MemoryShells();
    const { terminals, directory } = await openTerminals(domain, { shells });
    const announcer = new MemoryAnnouncer();
    /** Channels that received a message. */
    const sentTo: string[] = [];
    const { key, actor } = await newAdmin(domain);
    const agent = await newAgent(domain, actor, 'web-1');
    await putOneTag(context, actor, 'web-1', 'role', 'web');
    await uploadModule(context, actor, 'm', moduleText);
    await createAssignment(context, actor, { name: 'base', modules: ['m'], selector: 'role=web' });
    const cookie = new SessionCookie('test');
    const app = createApp({
      handlers: {
        ...contextHandlers(context),
        ...operatorHandlers(context, domain.signIn, (reached) => reached ?? 'https://muster.example:4748'),
        ...enrollmentHandlers(context, () => ({ agents: 'muster.example:4747', publicKey: 'ab'.repeat(32) })),
        ...discoveryHandlers(
          createDiscovery(context, {
            announcer,
            port: 4747,
            agents: () => ({ host: 'muster.example', port: 4747 }),
            publicKey: new Uint8Array(32),
            sign: () => new Uint8Array(64),
          }),
        ),
        ...operationHandlers(context, domain.waiting, domain.liveOutput),
        ...runHandlers(context, domain.waiting, domain.conductor),
        ...driftHandlers(context, domain.waiting),
        ...channelHandlers(
          context,
          async (_, { channel }) => {
            sentTo.push(channel.id);
            return { status: 200, retryAfterMs: null };
          },
          { denyPrivate: false },
        ),
        ...terminalHandlers(terminals),
        ...metricsHandlers(metrics),
        ...settingsHandlers(() => describeSettings({ api_port: 4748 }, {})),
        ...eventHandlers(context, createLiveEvents(context, domain.clock, domain.signIn)),
        ...replicaHandlers({
          context,
          replica: { incarnation: context.incarnation, heartbeatAge: () => 0 },
          connectedTo: () => 0,
        }),
        ...statusHandlers({
          publicKey: 'ab'.repeat(32),
          version: '0.0.0',
          databaseKind: fixture.kind,
          writable: async () => true,
          secretsReadable: () => true,
          samples: () => ({ trouble: null }),
          disk: () => null,
          bus: () => null,
          replicas: () => [],
        }),
        ...sessionHandlers(domain.signIn, cookie),
      },
      sessions: domain.signIn,
      cookie,
      refused: recordRefused(domain.refusals),
      log: pino({ level: 'silent' }),
      version: '0.0.0',
      validateAnswers: true,
      limits: { rates: { signIn: { perMinute: 100_000, burst: 100_000 }, sessionPerSecond: 1_000_000 } },
      ...options,
    });
    context.bus.subscribe((hint) => {
      if (hint.type === 'operator_removed') app.cutOff(hint.operator_id);
      else if (hint.type === 'session_ended') app.sessionEnded(hint.token_hash, hint.renewed_as);
    });
    const token = await tokenOf(domain, key);
    /** Effects that occur outside the database. */
    const outside = { shells: shells.opened, announced: announcer.sent, sentTo };
    return { domain, app, actor, agent, key, token, terminals, transcripts: directory, metrics, outside };
  };
}
export type RealApi = Awaited<ReturnType<ReturnType<typeof realApiFixture>>>;
