import { byPattern, type Check } from './text.ts';

export const sysctlKey: Check = (key) =>
  /^[A-Za-z0-9_][A-Za-z0-9_./:-]*$/.test(key) && !key.includes('..')
    ? undefined
    : 'must be a kernel parameter, such as net.ipv4.ip_forward';

/**
 * Converts a key to the form in which identities are compared, with dots as separators. The separator of a key is
 * its first "." or "/".
 */
export const canonicalSysctlKey = (key: string): string =>
  /^[^./]*\//.test(key) ? key.replace(/[./]/g, (separator) => (separator === '/' ? '.' : '/')) : key;

export const hostname: Check = (name) =>
  name.length <= 64 && /^(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*$/.test(name)
    ? undefined
    : 'must be a host name: letters, digits and "-", in parts separated by dots, up to 64 characters';

export const timezone: Check = byPattern(
  /^[A-Za-z0-9_+-]+(\/[A-Za-z0-9_+-]+)*$/,
  'must be a time zone of the system, such as Europe/Paris',
);

export const localeName: Check = byPattern(
  /^(C|POSIX|[a-z]{2,3}(_[A-Z]{2})?)(\.[A-Za-z0-9][A-Za-z0-9-]{0,39})?(@[a-z]{1,20})?$/,
  'must be the name of a locale, such as de_DE.UTF-8 or de_DE@euro',
);

/** The name of a file in /usr/share/i18n/charmaps. */
export const localeCharset: Check = byPattern(
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/,
  'must be the name of a character set, such as UTF-8',
);

/**
 * Converts the name of a locale to the form in which glibc compares names: a character set in lower case, without
 * punctuation, and with the prefix `iso` if it consists of digits.
 */
export const canonicalLocale = (name: string): string =>
  name.replace(/\.([^@]*)/, (_, charset: string) => {
    const word = charset.toLowerCase().replace(/[^a-z0-9]/g, '');
    return `.${/^\d+$/.test(word) ? 'iso' : ''}${word}`;
  });
