/**
 * The lines that a person pastes on a machine. What is in them comes from the configuration, from keys, and from the
 * token: nothing of a request.
 */

/** From where a machine can install the agent. */
export interface InstallSource {
  /** Address of the API, without a slash at its end. */
  from: string;
  /** What its certificate's key must be, as curl wants it; null: certificates are checked as usual. */
  pin: string | null;
}

export interface EnrolmentLines {
  /** The one to paste: it installs the agent, where that is possible. */
  command: string;
  /** For a machine that has the program. */
  connect_command: string;
  /** Why `command` does not install, or what else to know of it; null: nothing. */
  note: string | null;
}

export interface EnrolmentPlaces {
  /** `host:port` that agents are told to dial. */
  agents: string;
  /** The orchestrator's identity key, hex. */
  publicKey: string;
  install?: InstallSource | { refused: string };
  /** What to know of these addresses. */
  note?: string | null;
}

/** @param approved the token lets agents in; else somebody has to approve them */
export function enrolmentLines(places: EnrolmentPlaces, token: string, approved: boolean): EnrolmentLines {
  const { agents, publicKey, install = { refused: null }, note = null } = places;
  // The token is in the environment: other users of the machine see arguments.
  const connect = `MUSTER_TOKEN=${word(token)} muster agent connect ${word(agents)} --orchestrator-key ${word(publicKey)}`;
  if ('refused' in install) return { command: connect, connect_command: connect, note: joined(install.refused, note) };
  const { from, pin } = install;
  // The certificate is the orchestrator's own: its key is what counts, not who vouches for it.
  const fetched = `curl -fsS${pin === null ? '' : `k --pinnedpubkey ${word(pin)}`} ${word(`${from}/install/agent.sh`)}`;
  const options = [
    ['--from', from],
    ...(pin === null ? [] : [['--pin', pin]]),
    ['--to', agents],
    ['--key', publicKey],
    ...(approved ? [] : [['--wait', 'no']]),
  ];
  const told = options.map(([name = '', value = '']) => `${name} ${word(value)}`).join(' ');
  // The end of a line like this is that of its shell, which of nothing is a success: it is told when nothing comes.
  const command = `(${fetched} || echo exit 1) | MUSTER_TOKEN=${word(token)} sh -s -- ${told}`;
  return { command, connect_command: connect, note };
}

const joined = (...notes: (string | null)[]): string | null => notes.filter((note) => note !== null).join('; ') || null;

const onlyHere = /^(127(\.\d+){3}|::1|localhost)$/i;

/**
 * What to know of the address that agents are told to dial.
 * @param agentHost null: every address
 * @param own name of the orchestrator's machine
 */
export function noteOnAgents(agentHost: string | null, advertisedHost: string | null, own: string): string | null {
  if (agentHost !== null && onlyHere.test(agentHost))
    return `agents can connect from the orchestrator’s own machine only, since agent_host is ${agentHost}: set it in the configuration`;
  if (advertisedHost !== null) return null;
  return `advertised_host is not set: the line has the name of this machine, ${own}, which the other one must know`;
}

/** A word of a POSIX shell that means just this text. */
export const word = (text: string): string =>
  /^[A-Za-z0-9_./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** What decides whether machines can install from here. */
export interface InstallFacts {
  /** Whether there are packages to serve. */
  hasPackages: boolean;
  /** Address that the API listens on. */
  apiHost: string;
  /** The API speaks TLS itself. */
  tls: boolean;
  /** Address of a proxy before the API. */
  publicUrl: string | null;
  /** The API's own address, as others reach it. */
  ownUrl: string;
  /** SHA-256 of the public key of the API's certificate, base64; null without TLS. */
  keyDigest: string | null;
}

export function installSource(facts: InstallFacts): InstallSource | { refused: string } {
  const { hasPackages, apiHost, tls, publicUrl, ownUrl, keyDigest } = facts;
  if (!hasPackages)
    return {
      refused:
        'this orchestrator has no packages that a machine could install from: it was not installed from a package, and its clone was not built (npm run build)',
    };
  // Whatever key the proxy has, it is not known here: machines check its certificate as they check others.
  if (publicUrl !== null) return { from: publicUrl.replace(/\/+$/, ''), pin: null };
  if (onlyHere.test(apiHost))
    return {
      refused: `the API listens on ${apiHost} only, where no other machine reaches it: set api_host in the configuration`,
    };
  if (!tls || keyDigest === null)
    return {
      refused:
        'the API speaks plain HTTP, and nobody should install programs over that: set public_url to the https address of the proxy before it',
    };
  return { from: ownUrl, pin: `sha256//${keyDigest}` };
}
