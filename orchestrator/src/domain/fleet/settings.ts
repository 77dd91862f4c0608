import type { Settings } from '@muster/protocol/http';

/** The effective configuration for display, with secrets masked. */

type Value = Settings['settings'][string];
type Source = Settings['sources'][string];

const masked = '••••';

/** Matches the names of keys that contain secrets. Public keys and the paths of secret files are not secret. */
const secretName = /(^|_)(secret|password|passphrase|token|credential|private_key|encryption_key|master_key|key)s?$/i;
const openNames: ReadonlySet<string> = new Set(['bootstrap_key', 'tls_key']);

/**
 * Returns the settings for display.
 * @param configuration the complete effective configuration
 * @param sources by dotted key, for values that differ from the default
 */
export function describeSettings(
  configuration: Readonly<Record<string, unknown>>,
  sources: Readonly<Record<string, Source>>,
): Settings {
  const origins: Record<string, Source> = {};
  const describe = (part: Readonly<Record<string, unknown>>, above: string): Settings['settings'] => {
    const settings: Settings['settings'] = {};
    for (const [name, setting] of Object.entries(part)) {
      const key = above + name;
      const value = asJson(setting);
      if (typeof value === 'object' && value !== null && !Array.isArray(value))
        settings[name] = describe(value as Record<string, unknown>, `${key}.`);
      else {
        settings[name] = maskValue(name, value as Value);
        origins[key] = sources[key] ?? 'default';
      }
    }
    return settings;
  };
  return { settings: describe(configuration, ''), sources: origins };
}

/** Converts values with a `toJSON` method, which defines how they are displayed. */
const asJson = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && 'toJSON' in value && typeof value.toJSON === 'function'
    ? value.toJSON()
    : value;

function maskValue(name: string, value: Value): Value {
  if (Array.isArray(value)) return value.map((item) => maskValue(name, item));
  if (typeof value !== 'string' || value === '') return value;
  if (secretName.test(name) && !openNames.has(name)) return masked;
  return maskInText(value);
}

function maskInText(text: string): string {
  if (/\b(password|passwd|pwd)\s*=/i.test(text) && !/^[a-z][a-z0-9+.-]*:/i.test(text)) return masked;
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return text;
  const url = URL.canParse(text) ? new URL(text) : null;
  // If the URL cannot be parsed, any part of it may be a secret.
  if (url === null) return text.includes('@') || text.includes('?') ? masked : text;
  let changed = false;
  for (const name of new Set(url.searchParams.keys()))
    if (secretName.test(name) || /pass|pwd|secret|token/i.test(name)) {
      url.searchParams.set(name, masked);
      changed = true;
    }
  if (url.password !== '') {
    url.password = masked;
    changed = true;
  }
  return changed ? url.href.replaceAll(encodeURIComponent(masked), masked) : text;
}
