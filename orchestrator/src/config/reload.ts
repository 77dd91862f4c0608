import type { Invocation } from './read.ts';
import type { Config } from './schema.ts';

/** Settings that a reload applies. Changes to all other settings require a restart. */
export const reloadable: readonly string[] = [
  'agents.daily_bytes',
  'audit.retention_days',
  'disk.reserve',
  'drain.links_per_second',
  'drift.interval',
  'drift.max_concurrent',
  'drift.retention_days',
  'drift.skip_recently_applied',
  'metrics_token',
  'notifications.deny_private',
  'notifications.give_up_after',
  'notifications.retention_days',
  'operations.retention_days',
  'rates.session_per_second',
  'rates.sign_in_burst',
  'rates.sign_in_per_minute',
  'sign_in.console_idle_secs',
  'sign_in.console_life_secs',
  'sign_in.origins',
  'sign_in.require_bound',
  'terminals.idle_limit',
  'terminals.reattach_secs',
  'terminals.record_input',
  'terminals.retention_days',
  'terminals.transcript_limit',
  'tls_cert',
  'tls_key',
];

export interface Changes {
  /** Settings that have changed since the last load, and take effect immediately. */
  readonly now: readonly string[];
  /** Settings that differ from the configuration at startup, and take effect only after a restart. */
  readonly atStart: readonly string[];
}

/**
 * @param start configuration at startup
 * @param current current configuration
 * @param about `ownCertificate`: whether the API serves a generated certificate. A configured certificate replaces it
 * only at the next restart.
 * @returns names of the settings that differ; without values, which may be secret
 */
export function changesOf(
  start: Config,
  current: Config,
  next: Config,
  { ownCertificate }: { ownCertificate: boolean },
): Changes {
  const appliesImmediately = (key: string) => reloadable.includes(key) && !(ownCertificate && key.startsWith('tls_'));
  return {
    now: differing(current, next).filter(appliesImmediately),
    atStart: differing(start, next).filter((key) => !appliesImmediately(key)),
  };
}

function differing(one: Config, other: Config): string[] {
  const old = flat(one);
  const fresh = flat(other);
  return [...new Set([...old.keys(), ...fresh.keys()])].filter((key) => old.get(key) !== fresh.get(key)).sort();
}

type Sources = Invocation['sources'];

/** Returns the sources of the values after a reload. Settings that require a restart keep their source. */
export function sourcesAfter(before: Sources, next: Sources): Sources {
  const stay = Object.entries(before).filter(([key]) => !reloadable.includes(key));
  const come = Object.entries(next).filter(([key]) => reloadable.includes(key));
  return Object.fromEntries([...stay, ...come]);
}

/** Returns the configuration after a reload. Settings that require a restart keep their value. */
export function reloaded(before: Config, after: Config): Config {
  const next = structuredCloneOf(before);
  for (const key of reloadable) {
    const [section, name] = key.split('.') as [keyof Config, string | undefined];
    if (name === undefined) (next as Record<string, unknown>)[section] = after[section];
    else (next[section] as Record<string, unknown>)[name] = (after[section] as Record<string, unknown>)[name];
  }
  return next;
}

/** Copies the sections, but shares values that are class instances. */
const structuredCloneOf = (config: Config): Config =>
  Object.fromEntries(
    Object.entries(config).map(([key, value]) => [key, isSection(value) ? { ...value } : value]),
  ) as Config;

const isSection = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;

function flat(part: object, above = ''): Map<string, string> {
  const found = new Map<string, string>();
  for (const [key, value] of Object.entries(part)) {
    if (isSection(value)) for (const [inner, text] of flat(value, `${above}${key}.`)) found.set(inner, text);
    // The JSON form of a database URL hides its password, which may have changed.
    else found.set(above + key, hasReveal(value) ? value.reveal() : JSON.stringify(value));
  }
  return found;
}

const hasReveal = (value: unknown): value is { reveal(): string } =>
  typeof value === 'object' && value !== null && 'reveal' in value;
