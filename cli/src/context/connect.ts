import { ApiError, type Client, createClient } from '@muster/protocol/client';
import { getStatus } from '@muster/protocol/http';
import { CliError, exits } from '../exit.ts';
import { sanitiseLine } from '../text/sanitize.ts';
import { openTransport, TrustDecided, type UnknownCertificate } from '../transport/client.ts';
import { lastTrustOf, openSession, tokenFile } from '../transport/session.ts';
import {
  choosePolicy,
  fingerprintSource,
  isUnknownIssuer,
  showFingerprint,
  type TrustPolicy,
  trustName,
} from '../transport/trust.ts';
import type { Connection, Context } from './context.ts';
import { trustServer } from './profile.ts';

const isLoopback = (host: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/i.test(host);

/**
 * Connects a command to its orchestrator: checks the certificate, signs in on demand, and signs in again if the session
 * is no longer valid.
 * @param atEnd registers functions that close the connections
 */
export async function connectTo(context: Context, atEnd: (close: () => void) => void): Promise<Connection> {
  const { out } = context;
  const target = await context.target();
  const { protocol, hostname, origin } = new URL(target.url);
  const policy = choosePolicy(target);
  if (policy.kind === 'anything') out.warn(`the certificate of ${origin} is not verified (--insecure-skip-verify)`);
  if (protocol === 'http:' && !isLoopback(hostname))
    out.warn(`${origin} is plain HTTP: others on the network can read the session token`);

  const open = (trustPolicy: TrustPolicy): Link => {
    const link = linkTo(context, target.url, trustPolicy);
    atEnd(link.close);
    return link;
  };
  let link = open(policy);
  /**
   * Opens a new connection after the operator has trusted a certificate, because tokens from the old connection must
   * not reach another server.
   */
  const linked = async <T>(use: (link: Link) => Promise<T>): Promise<T> => {
    const used = link;
    try {
      return await use(used);
    } catch (error) {
      if (!(error instanceof TrustDecided)) throw error;
      if (link === used) link = open({ kind: 'pinned', fingerprint: error.fingerprint, source: 'stored' });
      return await use(link);
    }
  };
  return {
    target,
    call: (route, request) => linked(({ call }) => call(route, request)),
    session: {
      token: () => linked(({ session }) => session.token()),
      signIn: () => linked(({ session }) => session.signIn()),
      isOpen: () => linked(({ session }) => session.isOpen()),
      forget: () => linked(({ session }) => session.forget()),
    },
    agentFor: (url) => link.agentFor(url),
  };
}

interface Link extends Omit<Connection, 'target'> {
  close(): void;
}

/** Creates a connection whose requests share a trust policy and a sign-in session. */
function linkTo(context: Context, url: string, policy: TrustPolicy): Link {
  const { env, now } = context;
  const { transport, agentFor, close, serversOf } = openTransport({
    policy,
    firstUse: (certificate) => trustAtFirstUse(context, certificate),
  });
  const client = (token: (() => Promise<string | null>) | null): Client =>
    createClient({ url, transport, ...(token ? { token } : {}) });
  const servers = () => serversOf(new URL(url));
  const trust = async () => {
    // An unverified server is identified by its key, which only a response reveals.
    if (policy.kind === 'anything' && servers().length === 0) await client(null)(getStatus, {});
    return trustName(policy, servers());
  };
  const session = openSession({
    key: context.key,
    store: ({ operatorId }) => tokenFile(env, url, operatorId, trust),
    client: (token) => client(token === null ? null : async () => token),
    servers,
    now,
  });
  const signedIn = client(session.token);
  const call: Client = async (route, request) => {
    try {
      return await signedIn(route, request);
    } catch (error) {
      if (error instanceof SyntaxError)
        throw new CliError(
          exits.unreachable,
          'unexpected_answer',
          `the server at ${new URL(url).origin} does not answer in JSON`,
          'Is this the address of an orchestrator? Specify another with --url or --profile.',
          { cause: error },
        );
      // The session may no longer be valid. A retry is safe, because the orchestrator refused the request before it had
      // any effect.
      if (!(error instanceof ApiError) || error.problem.code !== 'unauthenticated') throw error;
      await session.forget();
      return await signedIn(route, request);
    }
  };
  return { call, session, agentFor, close };
}

const reasons: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'it is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'no known authority signed it',
  UNABLE_TO_GET_ISSUER_CERT: 'no known authority signed it',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'no known authority signed it',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'no known authority signed it',
  ERR_TLS_CERT_ALTNAME_INVALID: 'it is for another name',
  CERT_HAS_EXPIRED: 'it has expired',
  CERT_NOT_YET_VALID: 'it is not valid yet',
};

/**
 * Refuses a certificate that is invalid rather than unknown, and an unknown certificate from a server that a
 * certificate authority previously vouched for. In both cases, someone may be intercepting the connection.
 */
async function requireNewServer(context: Context, { origin, reason }: UnknownCertificate): Promise<void> {
  const { url } = await context.target();
  const { operatorId } = await context.key();
  const isUnknown = reason === 'DEPTH_ZERO_SELF_SIGNED_CERT' || isUnknownIssuer(reason);
  const fault = !isUnknown
    ? (reasons[reason] ?? reason)
    : (await lastTrustOf(context.env, url, operatorId)) === trustName({ kind: 'authorities' }, [])
      ? 'a certificate authority vouched for the earlier one'
      : null;
  if (fault !== null)
    throw new CliError(
      exits.unreachable,
      'certificate_refused',
      `the certificate of ${origin} is not accepted: ${fault}; nothing was sent`,
      `--accept-new is only for servers that are new. Find out why the certificate changed, or compare it with ${fingerprintSource} and pass --fingerprint.`,
    );
}

/**
 * Shows the fingerprint and asks whether to trust it. Without a terminal, throws an error that mentions the flag to
 * use.
 */
async function trustAtFirstUse(context: Context, certificate: UnknownCertificate): Promise<void> {
  const { origin, reason, subject } = certificate;
  const fingerprint = showFingerprint(certificate.fingerprint);
  const { url } = await context.target();
  if (context.options.acceptNew) {
    await requireNewServer(context, certificate);
    context.out.warn(
      `trusting the unknown certificate of ${origin} without verification (--accept-new): ${reasons[reason] ?? reason}\n  ${fingerprint}\n  ${sanitiseLine(subject)}`,
    );
    await trustServer(context.env, url, certificate.fingerprint, context.now);
    return;
  }
  if (!context.prompt.interactive)
    throw new CliError(
      exits.unreachable,
      'certificate_unknown',
      `the certificate of ${origin} is not trusted yet; nothing was sent\n${fingerprint}`,
      `Compare it with ${fingerprintSource}, then: muster login --url ${url} --fingerprint ${fingerprint}`,
    );
  context.out.warn(
    `the certificate of ${origin} is not trusted yet: ${reasons[reason] ?? reason}\n` +
      `  ${fingerprint}\n  ${sanitiseLine(subject)}\n` +
      `Compare it with ${fingerprintSource}.`,
  );
  if (!(await context.prompt.confirm('Trust this certificate?')))
    throw new CliError(exits.unreachable, 'certificate_refused', 'the certificate was not trusted; nothing was sent');
  await trustServer(context.env, url, certificate.fingerprint, context.now);
}
