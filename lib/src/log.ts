/**
 * A log. Methods take the fields first and then the message, neither of which may contain secrets. pino implements this
 * interface.
 */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
