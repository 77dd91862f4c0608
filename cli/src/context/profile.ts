import { readFileSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { isMapping } from '@muster/protocol';
import { configDirectory, type Environment, writePrivateFile } from '../directories.ts';
import { CliError, exits, usageError } from '../exit.ts';
import { nearest } from '../text/nearest.ts';
import { parseSwitch } from '../text/values.ts';
import { type Fingerprint, type FingerprintSource, parseFingerprint } from '../transport/trust.ts';

/** A named orchestrator. */
export interface Profile {
  url: string;
  /** Absolute path of the operator key; null for the default key. */
  key_file: string | null;
}

/** The content of `profiles.json`: profiles by name, and trusted certificates by origin. */
export interface Profiles {
  version: 1;
  current: string | null;
  profiles: Record<string, Profile>;
  servers: Record<string, { fingerprint: Fingerprint; trusted_at: string }>;
}

export const profilesPath = (env: Environment): string => join(configDirectory(env), 'profiles.json');
const defaultKeyPath = (env: Environment): string => join(configDirectory(env), 'operator.key');
export const defaultUrl = 'https://127.0.0.1:4748';

const none = (): Profiles => ({ version: 1, current: null, profiles: named(), servers: named() });
/** Creates a map without a prototype, because users choose the keys, and `__proto__` must be an ordinary key. */
const named = <T>(entries: Iterable<readonly [string, T]> = []): Record<string, T> =>
  Object.assign(Object.create(null), Object.fromEntries(entries));

const nameShape = /^[\p{L}\p{Nd}][\p{L}\p{Nd}._-]{0,63}$/u;

/**
 * Parses an orchestrator's address.
 * @returns scheme, host, port, and the path that a proxy may add, without a trailing slash
 * @throws CliError (usage) if the address is invalid
 */
export function parseUrl(text: string): string {
  const remedy = `Specify an address such as ${defaultUrl}.`;
  let url: URL;
  try {
    url = new URL(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`);
  } catch {
    throw usageError(`${JSON.stringify(text)} is not an address`, remedy);
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw usageError(`the address ${JSON.stringify(text)} begins with neither https:// nor http://`, remedy);
  if (url.username || url.password || url.search || url.hash)
    throw usageError(`the address ${JSON.stringify(text)} may contain only a host, a port, and a path`, remedy);
  return url.origin + url.pathname.replace(/\/+$/, '');
}

function faulty(path: string, what: string, cause?: unknown): CliError {
  return new CliError(
    exits.usage,
    'profiles_invalid',
    `cannot use ${path}: ${what}`,
    'Fix the file, or move it away and create the profiles again (`muster profile create`).',
    { cause },
  );
}

/** Returns the error for an unknown profile, which suggests the most similar name. */
export function missingProfile(profileName: string, { profiles }: Profiles): CliError {
  const near = nearest(profileName, Object.keys(profiles));
  const remedy = `${near === null ? '' : `Did you mean ${near}? `}List the profiles: muster profile list`;
  return usageError(`there is no profile ${JSON.stringify(profileName)}`, remedy);
}

/**
 * Reads the profiles.
 * @returns no profiles if the file does not exist
 */
export async function readProfiles(env: Environment): Promise<Profiles> {
  const path = profilesPath(env);
  let text: string;
  try {
    // Reads synchronously, because loading node:fs/promises takes longer than reading the file.
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return none();
    throw faulty(path, (error as Error).message, error);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw faulty(path, (error as Error).message, error);
  }
  return checked(path, value);
}

function checked(path: string, value: unknown): Profiles {
  if (!isMapping(value) || !isMapping(value.profiles) || !isMapping(value.servers))
    throw faulty(path, '`profiles` or `servers` is missing');
  if (value.version !== 1) throw faulty(path, 'it was written by another version of muster');
  const profiles = Object.entries(value.profiles).map(([name, profile]) => {
    if (!isMapping(profile) || typeof profile.url !== 'string') throw faulty(path, `profile ${name} has no url`);
    const keyFile = typeof profile.key_file === 'string' ? profile.key_file : null;
    return [name, { url: profile.url, key_file: keyFile }] as const;
  });
  const servers = Object.entries(value.servers).map(([origin, server]) => {
    const fingerprint =
      isMapping(server) && typeof server.fingerprint === 'string' ? parseFingerprint(server.fingerprint) : null;
    // Refuses an unreadable pin, because the certificate would otherwise go unchecked.
    if (!isMapping(server) || fingerprint === null) throw faulty(path, `the fingerprint of ${origin} is invalid`);
    return [origin, { fingerprint, trusted_at: String(server.trusted_at ?? '') }] as const;
  });
  const current = typeof value.current === 'string' ? value.current : null;
  return { version: 1, current, profiles: named(profiles), servers: named(servers) };
}

export async function writeProfiles(env: Environment, profiles: Profiles): Promise<void> {
  await writePrivateFile(profilesPath(env), `${JSON.stringify(profiles, null, 2)}\n`);
}

/** Stores the fingerprint of an address's certificate as trusted. */
export async function trustServer(
  env: Environment,
  url: string,
  fingerprint: Fingerprint,
  now: () => number,
): Promise<void> {
  const profiles = await readProfiles(env);
  profiles.servers[new URL(url).origin] = { fingerprint, trusted_at: new Date(now() * 1000).toISOString() };
  await writeProfiles(env, profiles);
}

export interface NewProfile {
  name: string;
  url: string;
  /** Path of the operator key; null for the default key. A relative path is resolved against the working directory. */
  keyFile?: string | null;
  fingerprint?: string | null;
  /** Whether to replace an existing profile with this name. */
  replace?: boolean;
  /** Whether to make the profile the default. The first profile always becomes the default. */
  use?: boolean;
}

/**
 * Adds a profile, or with `replace` updates one.
 * @param now Unix seconds
 * @throws CliError (usage) if the name, address, or fingerprint is invalid, or if the name exists
 */
export async function createProfile(env: Environment, profile: NewProfile, now: () => number): Promise<Profile> {
  if (!nameShape.test(profile.name))
    throw usageError(
      `${JSON.stringify(profile.name)} is not a valid profile name`,
      'Use up to 64 letters, digits, dots, dashes, and underscores.',
    );
  const url = parseUrl(profile.url);
  const fingerprint = profile.fingerprint ? requireFingerprint(profile.fingerprint) : null;
  const profiles = await readProfiles(env);
  if (profiles.profiles[profile.name] && !profile.replace)
    throw usageError(
      `the profile ${profile.name} already exists`,
      `To change it: muster profile create ${profile.name} --replace …`,
    );
  const made: Profile = { url, key_file: profile.keyFile ? resolve(profile.keyFile) : null };
  profiles.profiles[profile.name] = made;
  if (fingerprint !== null)
    profiles.servers[new URL(url).origin] = { fingerprint, trusted_at: new Date(now() * 1000).toISOString() };
  if (profile.use || profiles.current === null || !profiles.profiles[profiles.current]) profiles.current = profile.name;
  await writeProfiles(env, profiles);
  return made;
}

/**
 * Parses a fingerprint.
 * @throws CliError (usage) if it is invalid
 */
function requireFingerprint(text: string): Fingerprint {
  const fingerprint = parseFingerprint(text);
  if (fingerprint === null)
    throw usageError(
      `${JSON.stringify(text)} is not a certificate fingerprint`,
      'It is the SHA-256 of the certificate: 64 hexadecimal digits, with or without colons, as the orchestrator prints it when it starts.',
    );
  return fingerprint;
}

/** The values of flags and variables that choose the orchestrator and the key. */
export interface TargetOptions {
  url?: string | undefined;
  keyFile?: string | undefined;
  profile?: string | undefined;
  fingerprint?: string | undefined;
  insecureSkipVerify?: boolean | undefined;
  /** Whether to trust an unknown certificate without asking. Only `muster login` has this flag. */
  acceptNew?: boolean | undefined;
}

/** The orchestrator, the operator key, and the expected certificate that a command uses. */
export interface Target {
  url: string;
  keyFile: string;
  profile: string | null;
  given: Fingerprint | null;
  givenBy: FingerprintSource;
  stored: Fingerprint | null;
  insecure: boolean;
}

/**
 * Chooses the target. Flags override variables, variables override the profile, and the profile overrides the defaults.
 * An explicit address ignores the current profile and its key unless a profile is specified too.
 */
export function chooseTarget(options: TargetOptions, env: Environment, profiles: Profiles): Target {
  const url = options.url ?? (env.MUSTER_URL || undefined);
  const requested = options.profile ?? (env.MUSTER_PROFILE || undefined);
  const name = requested ?? (url === undefined ? profiles.current : null);
  const profile = name === null ? undefined : profiles.profiles[name];
  if (requested !== undefined && !profile) throw missingProfile(requested, profiles);
  const chosen = parseUrl(url ?? profile?.url ?? defaultUrl);
  const keyFile = options.keyFile ?? (env.MUSTER_KEY_FILE || undefined) ?? profile?.key_file ?? defaultKeyPath(env);
  const given = options.fingerprint ?? (env.MUSTER_FINGERPRINT || undefined);
  return {
    url: chosen,
    keyFile: isAbsolute(keyFile) ? keyFile : resolve(keyFile),
    profile: profile ? name : null,
    given: given === undefined ? null : requireFingerprint(given),
    givenBy: options.fingerprint === undefined ? 'MUSTER_FINGERPRINT' : '--fingerprint',
    stored: profiles.servers[new URL(chosen).origin]?.fingerprint ?? null,
    insecure: options.insecureSkipVerify ?? parseSwitch('MUSTER_INSECURE_SKIP_VERIFY', env.MUSTER_INSECURE_SKIP_VERIFY),
  };
}
