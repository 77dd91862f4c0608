/** How this process signs in to NATS. */
export type NatsCredentials =
  /** A `.creds` file of `nsc`: a JWT and the seed of its key. */
  | { readonly kind: 'jwt'; readonly text: string }
  /** The seed of a key that the configuration of NATS lists. */
  | { readonly kind: 'nkey'; readonly seed: string }
  | { readonly kind: 'password'; readonly user: string; readonly password: string };

/** Maximum size of a credentials file, in characters. */
const maxLength = 65_536;

/**
 * Reads the content of a credentials file.
 * @throws Error that names the file but not its content, which is secret
 */
export function credentialsIn(text: string, file: string): NatsCredentials {
  const line = text.trim();
  if (line.length <= maxLength) {
    if (/^-{3,}BEGIN NATS USER JWT-{3,}\r?\n/m.test(line) && /^-{3,}BEGIN USER NKEY SEED-{3,}\r?\n/m.test(line))
      return { kind: 'jwt', text };
    if (/^SU[A-Z2-7]{56}$/.test(line)) return { kind: 'nkey', seed: line };
    const [, user, password] = /^([^:\s]+):(\S.*)$/.exec(line) ?? [];
    if (user !== undefined && password !== undefined) return { kind: 'password', user, password };
  }
  throw new Error(
    `nats.credentials_file ${file} must contain USER:PASSWORD, the seed of an nkey, or the content of a .creds file`,
  );
}
