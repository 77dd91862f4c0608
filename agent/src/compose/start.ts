import { randomBytes } from 'node:crypto';
import { hostname as machineName } from 'node:os';
import { join } from 'node:path';
import { signedContexts } from '@muster/protocol/signed-contexts';
import type { Clock } from '../../../lib/src/clock.ts';
import { lockDirectory } from '../../../lib/src/instance-lock.ts';
import type { Log } from '../../../lib/src/log.ts';
import packageJson from '../../package.json' with { type: 'json' };
import type { AgentArguments } from '../arguments.ts';
import { watchClock } from '../connection/clock-watch.ts';
import { Connection } from '../connection/connection.ts';
import { loadAgentIdentity } from '../connection/identity.ts';
import { Listener } from '../connection/listener.ts';
import { chooseTarget, OrchestratorFile } from '../connection/pin.ts';
import { ConvergeEngine } from '../converge/converge-engine.ts';
import { MachineFacts } from '../facts/machine-facts.ts';
import { machineSource } from '../host/machine-source.ts';
import { OpenTerminals } from '../host/pty/open-terminals.ts';
import { keepPtyAddonIn } from '../host/pty/pty.ts';
import { SampleBuffer } from '../metrics/sample-buffer.ts';
import { Sampler } from '../metrics/sampler.ts';
import { SavedSamples } from '../metrics/saved-samples.ts';
import { Terminals } from '../terminal/terminals.ts';
import { DriftWatch } from '../watch/drift-watch.ts';
import { Discovery } from './discovery.ts';
import { Idle } from './idle.ts';
import { loadSettings, type Settings } from './settings.ts';

export const version = packageJson.version;

export interface Agent {
  readonly nodeId: string;
  /** Reloads the configuration immediately, and checks for a pending new key. */
  reload(): Promise<void>;
  /** Finishes and reports the current resource, and closes the link. */
  stop(reason: string): Promise<void>;
}

/** No orchestrator is known, so the command line must specify one. */
export class NoOrchestratorError extends Error {}

/**
 * Builds and starts the agent.
 * @throws NoOrchestratorError, LoosePermissionsError, DirectoryInUse, ConfigError, or an error from opening the journal
 */
export async function startAgent(options: AgentArguments, clock: Clock, log: Log): Promise<Agent> {
  const identity = await loadAgentIdentity(options.dataDir);
  const unlock = await lockDirectory(options.dataDir, 'agent');
  keepPtyAddonIn(options.dataDir);
  const file = new OrchestratorFile(options.dataDir);
  const settings = await loadSettings(options.configPath, clock, log);
  const target = pinTarget(file, options, settings, log);
  const factsDir = options.factsDir ?? join(options.dataDir, 'facts.d');
  const facts = new MachineFacts({ factsDir, hostname: options.hostname, clock, log });
  await facts.gather();
  const idle = new Idle(clock, () => !engine.busy());
  const engine = new ConvergeEngine({
    dataDir: options.dataDir,
    // Derived from the agent's private key: changes only with that key, and never leaves the machine.
    planKey: identity.current.sign(Buffer.from(signedContexts.planDigestKey)),
    clock,
    log,
    limits: settings.limits,
    onReports: () => {
      connection.reportsReady();
      idle.worked();
    },
    onOutput: () => connection.outputReady(),
    onContentsWanted: () => connection.contentsWanted(),
    onEnded: (succeeded, kind) => {
      driftWatch.operationEnded(succeeded);
      if (kind === 'apply') facts.refresh();
    },
    onMeasured: (fingerprints) => driftWatch.measured(fingerprints),
    link: () => connection.orchestratorLink(),
  });
  const driftWatch = new DriftWatch({ engine, clock, log, hint: (keys) => connection.hintDrift(keys) });
  const terminals = new Terminals({
    clock,
    log,
    settings: () => settings.terminal(),
    open: new OpenTerminals(options.dataDir),
    ended: () => {
      idle.worked();
      connection.keysChanged();
    },
  });
  const { samples, saved, sampler } = createSampling(options.dataDir, () => identity.nodeId, settings, clock, log);
  const connection = new Connection({
    identity,
    introduction: {
      agentVersion: version,
      instanceId: randomBytes(16).toString('hex'),
      hostname: options.hostname ?? machineName(),
    },
    target,
    file,
    engine,
    terminals,
    samples,
    clock,
    log,
    random: Math.random,
    attributes: () => ({ ...facts.attributes, remote_terminal: String(settings.terminal().enabled) }),
    linked: (isUp) => apply(isUp),
  });
  const discovery = new Discovery(createListener(connection, clock, log), target === null);
  const apply = (isLinked?: boolean) => {
    discovery.update(settings.discovery(), isLinked);
    terminals.settingsChanged();
    sampler.update();
    if (isLinked) driftWatch.linked();
  };
  await engine.start();
  terminals.start();
  driftWatch.start();
  connection.start();
  settings.onChange(() => apply());
  settings.onChange(() => connection.attributesChanged());
  apply();
  idle.worked();
  const endClockWatch = watchClock(clock, log, () => connection.attributesChanged());
  facts.follow(() => connection.attributesChanged());
  return {
    nodeId: identity.nodeId,
    reload: () => {
      connection.keysChanged();
      return settings.again();
    },
    async stop(reason) {
      settings.end();
      driftWatch.end();
      discovery.end();
      facts.end();
      sampler.end();
      endClockWatch();
      idle.end();
      // In this order, the link can send the last results, and receives no message after the journal is closed.
      await Promise.all([engine.halt(), terminals.stop(reason)]);
      await connection.stop(reason);
      await Promise.all([saved.end(), engine.stop()]);
      unlock();
    },
  };
}

const createListener = (connection: Connection, clock: Clock, log: Log): Listener =>
  new Listener({
    clock,
    log,
    pinnedKey: () => connection.pinnedKey,
    announced: (found) => connection.announced(found),
  });

/** Creates the buffer of unsent samples, its copy on disk, and the sampler that fills the buffer. */
function createSampling(dataDir: string, nodeId: () => string, settings: Settings, clock: Clock, log: Log) {
  const samples = new SampleBuffer();
  const path = join(dataDir, 'unsent-samples.log');
  const saved = new SavedSamples({ path, nodeId, buffer: samples, clock, log });
  saved.restore();
  const sampler = new Sampler({
    source: machineSource,
    buffer: samples,
    clock,
    log,
    settings: () => settings.metrics(),
    changed: () => saved.changed(),
  });
  return { samples, saved, sampler };
}

/**
 * Chooses the orchestrator to connect to, and pins its key.
 * @returns null if the agent must wait for an announcement
 * @throws NoOrchestratorError
 */
function pinTarget(file: OrchestratorFile, options: AgentArguments, settings: Settings, log: Log) {
  const target = chooseTarget(file.read(), options.connect);
  const { enabled } = settings.discovery();
  if (target === null && enabled === false)
    throw new NoOrchestratorError(
      'no orchestrator is known yet, and discovery.enabled is false; connect once with: muster agent connect HOST:PORT --orchestrator-key HEX',
    );
  if (target !== null) {
    if (target.replacedKey !== null)
      log.warn({ former: target.replacedKey, key: target.orchestrator_key }, 'replaced the pinned orchestrator key');
    file.write(target);
  }
  return target;
}
