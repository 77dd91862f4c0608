import { json } from '../structured-edit/json.ts';
import { structuredProvider } from '../structured-edit/structured-provider.ts';
import { toml } from '../structured-edit/toml.ts';
import { yaml } from '../structured-edit/yaml.ts';

/** Values in files that the agent does not own. */
export const jsonUnix = structuredProvider('json-unix', json);
export const yamlUnix = structuredProvider('yaml-unix', yaml);
export const tomlUnix = structuredProvider('toml-unix', toml);
