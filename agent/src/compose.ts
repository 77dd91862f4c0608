import { randomBytes } from 'node:crypto';
import { hostname as machineName } from 'node:os';
import { join } from 'node:path';
import { signedContexts } from '@muster/protocol/signed-contexts';
import { discoveryPort } from '@muster/protocol/wire';
import type { Clock } from '../../lib/src/clock.ts';
import { lockDirectory } from '../../lib/src/instance-lock.ts';
import type { Log } from '../../lib/src/log.ts';
import packageJson from '../package.json' with { type: 'json' };
import type { AgentArguments } from './arguments.ts';
import type { AgentConfig } from './config.ts';
import { watchClock } from './connection/clock-watch.ts';
import { Connection } from './connection/connection.ts';
import { loadAgentIdentity } from './connection/identity.ts';
import { Listener } from './connection/listener.ts';
import { chooseTarget, OrchestratorFile } from './connection/pin.ts';
import { createEngine, defaultLimits } from './converge/engine.ts';
import { MachineFacts } from './facts/machine-facts.ts';
import { machineSource } from './host/machine-source.ts';
import { OpenTerminals } from './host/pty/open-terminals.ts';
import { keepPtyAddonIn } from './host/pty/pty.ts';
import { SampleBuffer } from './metrics/sample-buffer.ts';
import { defaultMetrics, Sampler } from './metrics/sampler.ts';
import { SavedSamples } from './metrics/saved-samples.ts';
import type { TerminalSettings } from './terminal/shell-choice.ts';
import { Terminals } from './terminal/terminals.ts';
import { DriftWatch } from './watch/drift-watch.ts';

export const version = packageJson.version;

export interface Agent {
  readonly nodeId: string;
  /** Reads the configuration at once instead of at the next event, and checks for a waiting new key. */
  reload(): Promise<void>;
  /** Finishes the current resource, reports it, and ends the link. */
  stop(reason: string): Promise<void>;
}

/** Time after the last report until the agent counts as idle and releases memory. */
const idleMs = 10_000;

/** No orchestrator is configured; the command line must name one. */
export class NoOrchestratorError extends Error {}

/**
 * Builds and starts the agent.
 * @throws NoOrchestratorError, LoosePermissionsError, DirectoryInUse, ConfigError, or an error of opening the journal
 */
export async function startAgent(options: AgentArguments, clock: Clock, log: Log): Promise<Agent> {
  const identity = await loadAgentIdentity(options.dataDir);
  const unlock = await lockDirectory(options.dataDir, 'agent');
  keepPtyAddonIn(options.dataDir);
  const file = new OrchestratorFile(options.dataDir);
  const target = chooseTarget(file.read(), options.connect);
  let follow = (_isLinked?: boolean) => {};
  const configured =
    options.configPath === null ? unconfigured : await followConfig(options.configPath, clock, log, () => follow());
  const { enabled } = configured.discovery();
  if (target === null && enabled === false)
    throw new NoOrchestratorError(
      'no orchestrator is known yet, and discovery.enabled is false; connect once with: muster agent connect HOST:PORT --orchestrator-key HEX',
    );
  if (target !== null) {
    if (target.replacedKey !== null)
      log.warn(
        { former: target.replacedKey, key: target.orchestrator_key },
        'replaced the pinned key with the given one',
      );
    file.write(target);
  }

  const facts = new MachineFacts({
    factsDir: options.factsDir ?? join(options.dataDir, 'facts.d'),
    hostname: options.hostname,
    clock,
    log,
  });
  await facts.gather();
  const idle = new Idle(clock, () => !engine.busy());
  const engine = createEngine({
    dataDir: options.dataDir,
    // Derived from the identity: stable as long as it is, and never leaves the machine.
    planKey: identity.current.sign(Buffer.from(signedContexts.planDigestKey)),
    clock,
    log,
    limits: {
      ...defaultLimits,
      get scriptMs() {
        return configured.scriptMs();
      },
      get packageMs() {
        return configured.packageMs();
      },
      get packageLockMs() {
        return configured.packageLockMs();
      },
    },
    onReports: () => {
      connection.reportsReady();
      idle.worked();
    },
    onOutput: () => connection.outputReady(),
    onEnded: (succeeded, kind) => {
      driftWatch.operationEnded(succeeded);
      if (kind === 'apply') facts.look();
    },
    onMeasured: (looks) => driftWatch.measured(looks),
  });
  const driftWatch = new DriftWatch({ engine, clock, log, hint: (keys) => connection.hintDrift(keys) });
  const terminals = new Terminals({
    clock,
    log,
    settings: () => configured.terminal(),
    open: new OpenTerminals(options.dataDir),
    ended: () => {
      idle.worked();
      connection.keysChanged();
    },
  });
  const samples = new SampleBuffer();
  const path = join(options.dataDir, 'unsent-samples.log');
  const saved = new SavedSamples({ path, nodeId: () => identity.nodeId, buffer: samples, clock, log });
  saved.restore();
  const sampler = new Sampler({
    source: machineSource,
    buffer: samples,
    clock,
    log,
    settings: () => configured.metrics(),
    changed: () => saved.changed(),
  });
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
    attributes: () => facts.attributes,
    linked: (isUp) => follow(isUp),
  });
  const discovery = new Discovery(
    new Listener({
      clock,
      log,
      pinnedKey: () => connection.pinnedKey,
      announced: (found) => connection.announced(found),
    }),
    target === null,
  );
  follow = (isLinked) => {
    discovery.update(configured.discovery(), isLinked);
    terminals.settingsChanged();
    sampler.update();
    if (isLinked) driftWatch.linked();
  };
  await engine.start();
  terminals.start();
  driftWatch.start();
  connection.start();
  follow();
  idle.worked();
  const endClockWatch = watchClock(clock, log, () => connection.attributesChanged());
  facts.follow(() => connection.attributesChanged());
  return {
    nodeId: identity.nodeId,
    reload: () => {
      connection.keysChanged();
      return configured.again();
    },
    async stop(reason) {
      configured.end();
      driftWatch.end();
      discovery.end();
      facts.end();
      sampler.end();
      endClockWatch();
      idle.end();
      // In this order, the link still sends the last results, and receives nothing after the journal is closed.
      await Promise.all([engine.halt(), terminals.stop(reason)]);
      await connection.stop(reason);
      await Promise.all([saved.end(), engine.stop()]);
      unlock();
    },
  };
}

interface Configured {
  /** Returns the current value, like all members. */
  discovery(): AgentConfig['discovery'];
  scriptMs(): number;
  packageMs(): number;
  packageLockMs(): number;
  terminal(): TerminalSettings;
  metrics(): AgentConfig['metrics'];
  /** Reads the file at once. */
  again(): Promise<void>;
  end(): void;
}

const noTerminals: TerminalSettings = {
  enabled: false,
  shell: '',
  allow_operator_shell_override: false,
  max_sessions: 0,
  user: '',
};

/** Defaults without a file, so that most agents never load the memory-hungry parser. */
const unconfigured: Configured = {
  discovery: () => ({ enabled: null, port: discoveryPort }),
  scriptMs: () => defaultLimits.scriptMs,
  packageMs: () => defaultLimits.packageMs,
  packageLockMs: () => defaultLimits.packageLockMs,
  terminal: () => noTerminals,
  metrics: () => defaultMetrics,
  again: async () => {},
  end: () => {},
};

/** Reads the configuration, and again whenever it changes. An invalid file has no effect. */
async function followConfig(path: string, clock: Clock, log: Log, onChange: () => void): Promise<Configured> {
  // Loaded on demand, because many agents have no configuration.
  const [{ parseConfig, configChanges, defaultConfig, ConfigError }, { readTextFile, watchFile }] = await Promise.all([
    import('./config.ts'),
    import('./host/files/watch-file.ts'),
  ]);
  const text = await readTextFile(path).catch((error: Error) => {
    throw new ConfigError([error.message]);
  });
  let config: AgentConfig;
  try {
    config = parseConfig(text);
  } catch (error) {
    throw error instanceof ConfigError ? new ConfigError([error.message], path) : error;
  }
  for (const change of configChanges(defaultConfig, config)) log.debug({ change }, 'configuration');
  const watch = watchFile(path, text, clock, (changed) => {
    if (changed === null) {
      log.error({ path }, 'the configuration file was removed; keeping the last configuration');
      return;
    }
    try {
      const next = parseConfig(changed);
      for (const change of configChanges(config, next)) log.info({ change }, 'configuration changed');
      config = next;
      onChange();
    } catch (error) {
      log.error({ path, error }, 'the configuration is invalid; keeping the last one');
    }
  });
  return {
    discovery: () => config.discovery,
    scriptMs: () => config.scripts.time_limit * 1000,
    packageMs: () => config.packages.time_limit * 1000,
    packageLockMs: () => config.packages.lock_timeout * 1000,
    terminal: () => config.remote_terminal,
    metrics: () => config.metrics,
    again: () => watch.again(),
    end: () => watch.end(),
  };
}

/**
 * Decides when to listen for announcements: without a setting, an agent that started without a known orchestrator listens
 * until its first link; if enabled, an agent listens whenever it has no link; if disabled, never.
 */
class Discovery {
  private readonly listener: Listener;
  private isLost: boolean;
  private isLinked = false;

  /** @param isLost whether no orchestrator is known */
  constructor(listener: Listener, isLost: boolean) {
    this.listener = listener;
    this.isLost = isLost;
  }

  update({ enabled, port }: AgentConfig['discovery'], isLinked = this.isLinked): void {
    this.isLinked = isLinked;
    if (isLinked) this.isLost = false;
    this.listener.listen(!isLinked && (enabled ?? this.isLost) ? port : null);
  }

  end(): void {
    this.listener.listen(null);
  }
}

/**
 * Collects garbage once when the agent becomes idle. V8 has no reason to while nothing is allocated, and the garbage of the
 * last apply would stay resident until the next one, which may be in a month. The launcher exposes the collector.
 */
class Idle {
  private readonly clock: Clock;
  private readonly isIdle: () => boolean;
  private cancelTimer: () => void = () => {};

  constructor(clock: Clock, isIdle: () => boolean) {
    this.clock = clock;
    this.isIdle = isIdle;
  }

  worked(): void {
    this.cancelTimer();
    this.cancelTimer = this.clock.after(idleMs, () => {
      if (!this.isIdle()) return this.worked();
      return globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    });
  }

  end(): void {
    this.cancelTimer();
  }
}
