import packageJson from '../package.json' with { type: 'json' };

/** Version of this release. */
export const version = packageJson.version;
