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
  /** Reads the configuration at once, which without it does when the file changes, and looks whether a new key waits. */
  reload(): Promise<void>;
  /** Ends what runs at a resource's end, tells the orchestrator, says goodbye. */
  stop(reason: string): Promise<void>;
}

/** So long after the last report the agent counts as idle, and gives back the memory that its work took. */
const idleMs = 10_000;

/** There is nothing to connect to: a matter of the command line. */
export class NoOrchestratorError extends Error {}

/**
 * Puts the agent together and starts it.
 * @throws NoOrchestratorError, LoosePermissionsError, DirectoryInUse, ConfigError; whatever keeps the journal from opening
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
      'no orchestrator is known yet, and discovery.enabled is false; say once where it is: muster agent connect HOST:PORT --orchestrator-key HEX',
    );
  if (target !== null) {
    if (target.replacedKey !== null)
      log.warn(
        { former: target.replacedKey, key: target.orchestrator_key },
        'the pinned key is replaced by the one given',
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
    // It never leaves the machine, and is the same as long as the identity is.
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
  const following = new Following(
    new Listener({
      clock,
      log,
      pinnedKey: () => connection.pinnedKey,
      announced: (found) => connection.announced(found),
    }),
    target === null,
  );
  follow = (isLinked) => {
    following.update(configured.discovery(), isLinked);
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
      following.end();
      facts.end();
      sampler.end();
      endClockWatch();
      idle.end();
      // Its last results still go out over the link, and nothing comes in any more when the journal closes.
      await Promise.all([engine.halt(), terminals.stop(reason)]);
      await connection.stop(reason);
      await Promise.all([saved.end(), engine.stop()]);
      unlock();
    },
  };
}

interface Configured {
  /** As it is now. */
  discovery(): AgentConfig['discovery'];
  /** How long a script may take, in milliseconds. */
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

/** What holds without a file; the parser of one costs memory that most agents never need. */
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

/** Reads the configuration and again whenever it changes; one that is broken changes nothing. */
async function followConfig(path: string, clock: Clock, log: Log, onChange: () => void): Promise<Configured> {
  // Only those who have a configuration pay for what reads it.
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
      log.error({ path }, 'the configuration is gone; the last one stays');
      return;
    }
    try {
      const next = parseConfig(changed);
      for (const change of configChanges(config, next)) log.info({ change }, 'configuration changed');
      config = next;
      onChange();
    } catch (error) {
      log.error({ path, error }, 'the configuration is broken; the last one stays');
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
 * When announcements are listened to: by an agent that was started without knowing an orchestrator until it has its first
 * link; by one whose configuration says so, whenever it has none; never where the configuration forbids it.
 */
class Following {
  private readonly listener: Listener;
  private isLost: boolean;
  private isLinked = false;

  /** @param isLost no orchestrator is known */
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
 * Collects garbage once when the agent falls idle. V8 has no reason to while nothing is allocated, and the garbage of the
 * last apply would stay resident until the next one, which may be in a month. The launcher exposes the collector.
 */
class Idle {
  private readonly clock: Clock;
  private readonly isIdle: () => boolean;
  private callOff: () => void = () => {};

  constructor(clock: Clock, isIdle: () => boolean) {
    this.clock = clock;
    this.isIdle = isIdle;
  }

  worked(): void {
    this.callOff();
    this.callOff = this.clock.after(idleMs, () => {
      if (!this.isIdle()) return this.worked();
      return globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    });
  }

  end(): void {
    this.callOff();
  }
}
