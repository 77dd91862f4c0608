import { hash, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { addressText } from '@muster/protocol/agent-address';
import type { Config } from '../config/schema.ts';
import { installSource, noteOnAgents } from '../domain/agents/enrollment-line.ts';
import { isOwnServer, ownServers } from '../domain/operators/own-servers.ts';

/** A certificate and its key, in PEM. */
export interface Tls {
  readonly cert: string;
  readonly key: string;
}

/** The addresses at which operators and machines reach this orchestrator, and the orchestrator's server names. */
export class Addresses {
  readonly #config: Config;
  /** The API's current certificate in PEM; null for plain HTTP. */
  certificate: string | null;
  /** The configured port; the actual port once the API listens. */
  apiPort: number;
  agentPort: number;

  constructor(config: Config, tls: Tls | null) {
    this.#config = config;
    this.certificate = tls?.cert ?? null;
    this.apiPort = config.api_port;
    this.agentPort = config.agent_port;
  }

  get #scheme(): string {
    return this.#config.tls_enabled ? 'https' : 'http';
  }

  /** URL of the proxy in front of the API, without a trailing slash; null if there is none. */
  get publicUrl(): string | null {
    return this.#config.public_url?.replace(/\/+$/, '') ?? null;
  }

  /** API URL for operators and other machines. */
  get api(): string {
    const host = this.#config.advertised_host ?? hostname();
    return this.publicUrl ?? `${this.#scheme}://${addressText({ host, port: this.apiPort })}`;
  }

  /** API URL with the address on which the API listens. */
  get ownApi(): string {
    const { api_host } = this.#config;
    const host = api_host === '0.0.0.0' || api_host === '::' ? '127.0.0.1' : api_host;
    return `${this.#scheme}://${addressText({ host, port: this.apiPort })}`;
  }

  /** Address that agents dial; the host is null if agents can use any address of this machine. */
  get agents(): { host: string | null; port: number } {
    const { advertised_host, agent_host } = this.#config;
    return { host: advertised_host ?? oneAddress(agent_host), port: this.agentPort };
  }

  /** Returns the data for an agent's install command. */
  enrollment(publicKey: string, hasPackages: boolean) {
    const { advertised_host, agent_host, api_host, public_url } = this.#config;
    return {
      agents: addressText({ host: advertised_host ?? hostname(), port: this.agentPort }),
      publicKey,
      install: installSource({
        hasPackages,
        apiHost: api_host,
        tls: this.certificate !== null,
        publicUrl: public_url,
        ownUrl: this.api,
        keyDigest: this.certificate === null ? null : keyDigestOf(this.certificate),
      }),
      note: noteOnAgents(agent_host, advertised_host, hostname()),
    };
  }

  /**
   * Reports whether a server name in a sign-in belongs to this orchestrator.
   * @param origins additional names from the current configuration
   */
  isOwnServer(server: string, loopback: boolean, origins: readonly string[]): boolean {
    const own = ownServers({
      certificate: this.certificate,
      apiHost: this.#config.api_host,
      apiPort: this.apiPort,
      advertisedHost: this.#config.advertised_host,
      publicUrl: this.#config.public_url,
      origins,
    });
    return isOwnServer(own, server, loopback);
  }
}

/**
 * Reads the configured certificate.
 * @returns null if TLS is disabled
 * @throws Error if a file cannot be read, or no certificate is configured
 */
export async function readTls({ tls_enabled, tls_cert, tls_key }: Config): Promise<Tls | null> {
  if (!tls_enabled) return null;
  if (tls_cert === null || tls_key === null)
    throw new Error(
      'tls_cert is missing from the configuration; restart the orchestrator to serve a generated certificate',
    );
  return { cert: await readFile(tls_cert, 'utf8'), key: await readFile(tls_key, 'utf8') };
}

/** Returns the SHA-256 of a certificate's public key in Base64, as for `curl --pinnedpubkey`. */
const keyDigestOf = (pem: string): string =>
  hash('sha256', new X509Certificate(pem).publicKey.export({ format: 'der', type: 'spki' }), 'base64');

/** @returns null if the host is the unspecified address, in any notation */
const oneAddress = (host: string | null): string | null => (host === null || /^[0:.]+$/.test(host) ? null : host);
