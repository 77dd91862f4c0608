/**
 * Checks a field's format. Returns the error, worded to complete a sentence about the field, or undefined.
 * Checks run on upload, if the text contains no expression, and again after resolution, because an expression may yield
 * any value.
 */
export type Check = (text: string) => string | undefined;

export const byPattern =
  (pattern: RegExp, fault: string): Check =>
  (text) =>
    pattern.test(text) ? undefined : fault;

/** Returns a check that runs all checks in order and returns the first error. */
export const allOf =
  (...checks: Check[]): Check =>
  (text) => {
    for (const check of checks) {
      const fault = check(text);
      if (fault !== undefined) return fault;
    }
    return undefined;
  };

export const maxLength =
  (characters: number): Check =>
  (text) =>
    text.length > characters ? `is longer than ${characters} characters` : undefined;

export const noExpression: Check = (text) => (text.includes('${{') ? 'cannot contain an expression' : undefined);

export const notEmpty: Check = (text) => (text === '' ? 'must not be empty' : undefined);

/** For text that becomes one line of a system file, in which a line break would add another line. */
export const oneLine: Check = (text) => (/[\n\r\0]/.test(text) ? 'must be one line, without line breaks' : undefined);

export const noNul: Check = (text) => (text.includes('\0') ? 'must not contain a NUL character' : undefined);

export const sha256: Check = byPattern(/^[0-9A-Fa-f]{64}$/, 'must be a SHA-256: 64 hexadecimal digits');

export const privateKey: Check = (text) =>
  /^-----BEGIN [A-Z ]*PRIVATE KEY-----\n/.test(text) ? undefined : 'must be a private key that begins with -----BEGIN';

export const plainName: Check = byPattern(
  /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,239}$/,
  'must be a name of letters, digits, "_", "." and "-"',
);

export const environmentName: Check = byPattern(
  /^[A-Za-z_][A-Za-z0-9_]*$/,
  'must be the name of an environment variable: letters, digits and "_", not starting with a digit',
);

export const sshKey: Check = byPattern(
  /^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]{16,}={0,2}$/,
  'must be the type and the key, such as "ssh-ed25519 AAAAC3…", without options; write text after the key into `comment`',
);

export const marker: Check = allOf(
  notEmpty,
  maxLength(128),
  byPattern(/^[^\s\x00-\x1f]+$/, 'must be one word, without spaces'),
);

export const base64: Check = (text) => {
  const packed = text.replace(/\s+/g, '');
  return packed.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(packed)
    ? undefined
    : 'must be base64, padded with "="';
};

/** Compiles the pattern with the `u` flag, as the agent does. */
export const regularExpression: Check = (text) => {
  try {
    new RegExp(text, 'u');
    return undefined;
  } catch (error) {
    return `is not a regular expression: ${(error as Error).message}`;
  }
};

/** A single line of text that neither begins nor ends with a space. */
export const trimmedLine = allOf(notEmpty, oneLine, maxLength(1000), (text) =>
  text.trim() === text ? undefined : 'must not begin or end with a space',
);

/** Characters that SASLprep (RFC 4013) does not change. */
export const printableAscii: Check = byPattern(/^[\x20-\x7e]*$/, 'must contain only printable ASCII characters');
