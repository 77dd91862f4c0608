import type { Fault } from '@muster/protocol';
import { sanitiseLine } from './sanitize.ts';
import type { Colors } from './style.ts';

/**
 * Formats an error in a module as compilers do, so that editors find its position: `file.yml:12:7 message`.
 * @param file the name as typed
 */
export function faultLine(file: string, fault: Fault, color: Colors, warning = false): string {
  const { line, column, path, message } = fault;
  const location = line === undefined ? `${file}${path === '' ? '' : ` ${path}`}` : `${file}:${line}:${column ?? 1}`;
  const kind = warning ? `${color.yellow('warning:')} ` : '';
  return `${color.bold(sanitiseLine(location))} ${kind}${sanitiseLine(message)}`;
}
