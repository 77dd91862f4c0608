import packageJson from '../package.json' with { type: 'json' };

/** The version of this Muster release. */
export const version = packageJson.version;
