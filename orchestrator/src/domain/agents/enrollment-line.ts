/**
 * The command lines that an operator pastes on a machine. They are built from the configuration, keys, and the token, never from
 * data of a request.
 */

/** Where a machine can install the agent from. */
export interface InstallSource {
  /** Base URL of the API, without a trailing slash. */
  from: string;
  /** Pin of the certificate's public key in curl's format; null when certificates are verified as usual. */
  pin: string | null;
}

export interface EnrolmentLines {
  /** The line to paste. It installs the agent if this orchestrator offers packages. */
  command: string;
  /** For a machine on which the agent is already installed. */
  connect_command: string;
  /** The reason why `command` does not install, or another remark; null for neither. */
  note: string | null;
}

export interface EnrolmentPlaces {
  /** `host:port` that agents dial. */
  agents: string;
  /** The orchestrator's identity key, hex. */
  publicKey: string;
  install?: InstallSource | { refused: string };
  /** Remark on these addresses. */
  note?: string | null;
}

/** @param approved whether the token enrolls agents as approved; otherwise an operator must approve them */
export function enrolmentLines(places: EnrolmentPlaces, token: string, approved: boolean): EnrolmentLines {
  const { agents, publicKey, install = { refused: null }, note = null } = places;
  // The token is passed in the environment because other users of the machine can see arguments.
  const connect = `MUSTER_TOKEN=${word(token)} muster agent connect ${word(agents)} --orchestrator-key ${word(publicKey)}`;
  if ('refused' in install) return { command: connect, connect_command: connect, note: joined(install.refused, note) };
  const { from, pin } = install;
  // The certificate is self-signed, so curl verifies its pinned key instead of its issuer.
  const fetched = `curl -fsS${pin === null ? '' : `k --pinnedpubkey ${word(pin)}`} ${word(`${from}/install/agent.sh`)}`;
  const options = [
    ['--from', from],
    ...(pin === null ? [] : [['--pin', pin]]),
    ['--to', agents],
    ['--key', publicKey],
    ...(approved ? [] : [['--wait', 'no']]),
  ];
  const told = options.map(([name = '', value = '']) => `${name} ${word(value)}`).join(' ');
  // A pipeline has the exit code of its last command, and a shell with empty input succeeds. So a failed download becomes the
  // script `exit 1`.
  const command = `(${fetched} || echo exit 1) | MUSTER_TOKEN=${word(token)} sh -s -- ${told}`;
  return { command, connect_command: connect, note };
}

const joined = (...notes: (string | null)[]): string | null => notes.filter((note) => note !== null).join('; ') || null;

const onlyHere = /^(127(\.\d+){3}|::1|localhost)$/i;

/**
 * A remark when other machines cannot reach the address that agents dial.
 * @param agentHost null: every address
 * @param own name of the orchestrator's machine
 */
export function noteOnAgents(agentHost: string | null, advertisedHost: string | null, own: string): string | null {
  if (agentHost !== null && onlyHere.test(agentHost))
    return `agents can connect from the orchestrator’s own machine only, since agent_host is ${agentHost}: set it in the configuration`;
  if (advertisedHost !== null) return null;
  return `advertised_host is not set: the line has the name of this machine, ${own}, which the other one must know`;
}

/** Quotes a text as one word of a POSIX shell. */
export const word = (text: string): string =>
  /^[A-Za-z0-9_./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** The settings that decide whether machines can install from here. */
export interface InstallFacts {
  hasPackages: boolean;
  /** Address that the API listens on. */
  apiHost: string;
  /** Whether the API serves TLS itself. */
  tls: boolean;
  /** URL of a reverse proxy in front of the API. */
  publicUrl: string | null;
  /** The API's own URL, as seen from other machines. */
  ownUrl: string;
  /** SHA-256 of the public key of the API's certificate, base64; null without TLS. */
  keyDigest: string | null;
}

export function installSource(facts: InstallFacts): InstallSource | { refused: string } {
  const { hasPackages, apiHost, tls, publicUrl, ownUrl, keyDigest } = facts;
  if (!hasPackages)
    return {
      refused:
        'this orchestrator has no packages to install from: install it from a package, or build its clone (npm run build)',
    };
  // The proxy's key is unknown, so machines verify its certificate as usual.
  if (publicUrl !== null) return { from: publicUrl.replace(/\/+$/, ''), pin: null };
  if (onlyHere.test(apiHost))
    return {
      refused: `the API listens on ${apiHost} only, where no other machine reaches it: set api_host in the configuration`,
    };
  if (!tls || keyDigest === null)
    return {
      refused:
        'the API speaks plain HTTP, which is not safe for installing programs: set public_url to the https address of the proxy in front of it',
    };
  return { from: ownUrl, pin: `sha256//${keyDigest}` };
}
