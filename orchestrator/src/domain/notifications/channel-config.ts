import { isIP } from 'node:net';
import { type Fault, MusterError } from '@muster/protocol';
import {
  type ChannelConfigs,
  type ChannelTarget,
  type ChannelType,
  channelConfigs,
  maskedSecret,
} from '@muster/protocol/http';
import { pointer } from '@muster/protocol/module';
import { mayReach } from './network-address.ts';

/** Parses, validates, and masks channel configs. */

type AnyConfig = ChannelConfigs[ChannelType];
type Texts = Readonly<Record<string, string>>;

const plain = (text: string): string => text;
const hidden = (): string => maskedSecret;

/**
 * Masks the user and the query in a webhook's URL. The path remains visible, so that operators recognize the webhook.
 */
function shownAddress(text: string): string {
  const url = new URL(text);
  if (url.username === '' && url.password === '' && url.search === '') return text;
  const user = url.username === '' && url.password === '' ? '' : `${maskedSecret}@`;
  return `${url.protocol}//${user}${url.host}${url.pathname}${url.search === '' ? '' : `?${maskedSecret}`}`;
}

/** Masks everything after the origin, because the path of such a URL is a credential. */
const shownOrigin = (text: string): string => `${new URL(text).origin}/${maskedSecret}`;

/** Returns the origin of an ntfy server; an empty string for the public server. */
const originOf = (url: string | undefined): string => (url === undefined ? '' : new URL(url).origin);

const shown: { readonly [T in ChannelType]: { readonly [F in keyof ChannelConfigs[T]]-?: (text: string) => string } } =
  {
    webhook: { url: shownAddress, secret: hidden },
    discord: { webhook_url: shownOrigin },
    slack: { webhook_url: shownOrigin },
    ntfy: { url: shownAddress, topic: plain, token: hidden },
  };

const addresses: readonly string[] = ['url', 'webhook_url'];

export function showConfig({ channel_type, config }: ChannelTarget): Record<string, string> {
  const show = shown[channel_type] as Readonly<Record<string, (text: string) => string>>;
  return Object.fromEntries(
    Object.entries(config as Texts).map(([field, text]) => [field, (show[field] as typeof plain)(text)]),
  );
}

/**
 * Parses a config.
 * @param stored the config to replace; fields that contain the mask keep their stored values
 * @throws MusterError invalid_input with all errors, none of which contains a value
 */
export function readConfig(
  type: ChannelType,
  given: unknown,
  stored: ChannelTarget | null,
  rule: { denyPrivate: boolean },
): ChannelTarget {
  const read = channelConfigs[type].safeParse(given);
  if (!read.success)
    throw refused(
      read.error.issues.flatMap((issue) =>
        issue.code === 'unrecognized_keys'
          ? issue.keys.slice(0, 100).map((key) => ({ path: pathOf(key), message: 'unknown field' }))
          : [{ path: pathOf(...issue.path), message: issue.message.replace(/^Invalid input: /, '') }],
      ),
    );
  const storedConfig = (stored?.config ?? {}) as Texts;
  const masked: Texts = stored === null ? {} : showConfig(stored);
  const faults: Fault[] = [];
  const config: Record<string, string> = {};
  for (const [field, text] of Object.entries(read.data as Record<string, string | undefined>)) {
    if (text === undefined) continue;
    const known = storedConfig[field];
    if (known !== undefined && (text === maskedSecret || (text === masked[field] && text.includes(maskedSecret))))
      config[field] = known;
    else if (text.includes(maskedSecret))
      faults.push({
        path: pathOf(field),
        message: `contains the mask ${maskedSecret}, but no value is stored for this field`,
      });
    else {
      const fault = addresses.includes(field) ? addressFault(text, rule) : null;
      if (fault !== null) faults.push({ path: pathOf(field), message: fault });
      config[field] = text;
    }
  }
  // Reuses a masked token only for the same server. Otherwise, an operator who may not read the token could redirect it
  // to another server.
  if (config.token !== undefined && (given as Texts).token === maskedSecret)
    if (faults.length === 0 && originOf(config.url) !== originOf(storedConfig.url))
      faults.push({
        path: pathOf('token'),
        message: 'contains the mask, but the stored token belongs to another server; enter the token again',
      });
  if (faults.length > 0) throw refused(faults);
  return { channel_type: type, config: config as AnyConfig } as ChannelTarget;
}

/**
 * Returns the error in a URL, or null. Classifies literal addresses in any notation. Host names are checked at
 * delivery, based on the addresses to which they resolve.
 */
function addressFault(text: string, rule: { denyPrivate: boolean }): string | null {
  if (/[\s\p{Cc}]/u.test(text)) return 'must not contain spaces or control characters';
  if (!URL.canParse(text)) return 'must be a URL such as https://hooks.example/path';
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must begin with http:// or https://';
  const host = hostOf(url);
  if (host === '') return 'must contain a host';
  if (/%(?![0-9a-f]{2})/i.test(url.username + url.password)) return 'has an invalid percent-encoding in its user';
  if (isIP(host) !== 0 && !mayReach(host, rule)) return 'has a blocked address';
  return null;
}

/** Returns the host of a URL without brackets. The URL parser has normalized IP addresses. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');

const pathOf = (...keys: PropertyKey[]): string => pointer(['config', ...keys]);

const refused = (faults: Fault[]): MusterError =>
  new MusterError('invalid_input', `${faults[0]?.path.slice(1)}: ${faults[0]?.message}`, faults);
