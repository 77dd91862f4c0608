import { discoveryPort } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import type { AgentConfig } from '../config.ts';
import { defaultLimits } from '../converge/converge-engine.ts';
import { defaultMetrics } from '../metrics/sampler.ts';
import type { ProviderLimits } from '../resources/provider/provider.ts';
import type { TerminalSettings } from '../terminal/shell-choice.ts';

/** The current configuration. */
export interface Settings {
  /** A function rather than a property, because the value may change. The same applies to `terminal` and `metrics`. */
  discovery(): AgentConfig['discovery'];
  readonly limits: ProviderLimits;
  terminal(): TerminalSettings;
  metrics(): AgentConfig['metrics'];
  onChange(listener: () => void): void;
  /** Reads the file again immediately. */
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

/**
 * Settings without a configuration file. Most agents have no such file and therefore never load the YAML parser, which
 * uses a lot of memory.
 */
const unconfigured: Settings = {
  discovery: () => ({ enabled: null, port: discoveryPort }),
  limits: defaultLimits,
  terminal: () => noTerminals,
  metrics: () => defaultMetrics,
  onChange: () => {},
  again: async () => {},
  end: () => {},
};

/**
 * Reads the configuration now and after each change to the file. An invalid change has no effect.
 * @param path null if the agent has no configuration file
 * @throws ConfigError if the file is missing or invalid
 */
export async function loadSettings(path: string | null, clock: Clock, log: Log): Promise<Settings> {
  if (path === null) return unconfigured;
  const [{ parseConfig, configChanges, defaultConfig, ConfigError }, { readTextFile, watchFile }] = await Promise.all([
    import('../config.ts'),
    import('../host/files/watch-file.ts'),
  ]);
  const text = await readTextFile(path).catch((error: Error) => {
    throw new ConfigError([error.message]);
  });
  let config: AgentConfig;
  const listeners: (() => void)[] = [];
  try {
    config = parseConfig(text);
  } catch (error) {
    throw error instanceof ConfigError ? new ConfigError([error.message], path) : error;
  }
  for (const change of configChanges(defaultConfig, config)) log.debug({ change }, 'setting differs from its default');
  const watch = watchFile(path, text, clock, (changed) => {
    if (changed === null) {
      log.error({ path }, 'configuration file removed; keeping the last configuration');
      return;
    }
    try {
      const next = parseConfig(changed);
      for (const change of configChanges(config, next)) log.info({ change }, 'configuration changed');
      config = next;
      for (const listener of listeners) listener();
    } catch (error) {
      log.error({ path, error }, 'the configuration is invalid; keeping the previous one');
    }
  });
  return {
    discovery: () => config.discovery,
    limits: {
      ...defaultLimits,
      get scriptMs() {
        return config.scripts.time_limit * 1000;
      },
      get packageMs() {
        return config.packages.time_limit * 1000;
      },
      get packageLockMs() {
        return config.packages.lock_timeout * 1000;
      },
    },
    terminal: () => config.remote_terminal,
    metrics: () => config.metrics,
    onChange: (listener) => void listeners.push(listener),
    again: () => watch.again(),
    end: () => watch.end(),
  };
}
