/** What the parts need of a log; pino is one. Fields first, then a sentence for people. Never a secret in either. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
