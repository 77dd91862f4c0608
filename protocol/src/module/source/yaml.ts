import { Composer, CST, type Document, Lexer, Parser } from 'yaml';
import { moduleLimits } from './source.ts';

/** Receives an error at an offset in the text. The path is a JSON pointer. */
export type Report = (message: string, offset: number, path?: string) => void;

/** Thrown to stop parsing, after an error was reported. */
export class Abandoned extends Error {}

/** Reports an error and stops parsing. */
export const abandon = (report: Report, message: string, offset: number): never => {
  report(message, offset);
  throw new Abandoned();
};

// A value on its own line with a key has six tokens. The seventh token allows for comments.
const maximumTokens = 7 * moduleLimits.nodes;
// Line breaks within text are not tokens.
const maximumLineBreaks = 4 * moduleLimits.nodes;
const maximumSyntaxFaults = 20;
// The parser's stack has at most two entries per level and a few for the document, so this limit is never too strict.
const maximumStack = 2 * moduleLimits.depth + 8;

export const tooMany = `more than ${moduleLimits.nodes} values: split the module`;
export const tooDeep = `nested deeper than ${moduleLimits.depth} levels`;

/** Splits text into tokens, and stops parsing at the first exceeded limit. */
function tokenise(text: string, report: Report): CST.Token[] {
  const tokens: CST.Token[] = [];
  const parser = new Parser();
  let lexemes = 0;
  let offset = 0;
  // Counts of markers, each of which belongs to at least one value.
  let blockValues = 0;
  let flowValues = 0;
  let lineBreaks = 0;
  let documents = 0;
  let errors = 0;
  const keep = (token: CST.Token): void => {
    if (token.type === 'document') {
      documents += 1;
      if (documents > 1) abandon(report, 'more than one document: upload each module separately', token.offset);
    }
    if (token.type === 'error') errors += 1;
    if (errors <= maximumSyntaxFaults) tokens.push(token);
  };
  for (const lexeme of new Lexer().lex(text)) {
    lexemes += 1;
    if (lexeme === '-' || lexeme === ':') blockValues += 1;
    else if (lexeme === ',') flowValues += 1;
    else if (lexeme === '\n') lineBreaks += 1;
    if (blockValues > moduleLimits.nodes || flowValues > moduleLimits.nodes) abandon(report, tooMany, offset);
    if (lexemes > maximumTokens || lineBreaks > maximumLineBreaks)
      abandon(report, 'too many tokens: split the module, or remove comments and empty lines', offset);
    for (const token of parser.next(lexeme)) keep(token);
    offset = parser.offset;
    if (parser.stack.length > maximumStack) abandon(report, tooDeep, offset);
    if (errors > maximumSyntaxFaults) break;
  }
  for (const token of parser.end()) keep(token);
  return tokens;
}

/**
 * Parses a YAML document. Checks its size and depth before any node is built.
 * @throws Abandoned if the document exceeds a limit or is invalid, after the error was reported
 */
export function composeDocument(text: string, report: Report): Document.Parsed {
  // The composer's check for unique keys compares all pairs of keys. `readTree` checks them in linear time.
  const composer = new Composer({
    version: '1.2',
    merge: false,
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
  });
  const tokens = tokenise(text, report);
  const documents = [...composer.compose(tokens, true, text.length)];
  const document = documents[0];
  if (document === undefined || (document.contents === null && document.errors.length === 0)) {
    return abandon(report, 'the module is empty: it needs at least a name', 0);
  }
  const { yaml } = document.directives ?? {};
  if (yaml?.explicit && yaml.version !== '1.2')
    abandon(report, 'only YAML 1.2 is supported: remove the %YAML directive', 0);
  if (document.errors.length > 0) {
    for (const { code, message, pos } of document.errors.slice(0, maximumSyntaxFaults)) {
      const opening = message.startsWith('Missing closing') ? openingQuote(tokens, pos[0]) : undefined;
      report(
        opening === undefined ? explain(code, message) : 'not YAML: this quote is never closed: add the closing quote',
        opening ?? pos[0],
      );
      // The rest of the document is part of this text, so later errors follow from it.
      if (opening !== undefined) break;
    }
    throw new Abandoned();
  }
  return document as Document.Parsed;
}

/**
 * Finds the quote of a text that is not closed.
 * @param end offset at which the text ends
 * @returns its offset; undefined if no quoted text ends there
 */
function openingQuote(tokens: readonly CST.Token[], end: number): number | undefined {
  let found: number | undefined;
  for (const token of tokens)
    if (token.type === 'document')
      CST.visit(token, ({ key, value }) => {
        for (const part of [key, value])
          if (part?.type === 'double-quoted-scalar' || part?.type === 'single-quoted-scalar')
            if (part.offset + part.source.length === end) found = part.offset;
        return found === undefined ? undefined : CST.visit.BREAK;
      });
  return found;
}

/** Adds instructions, because the parser's message contains none. */
function explain(code: string, message: string): string {
  const cause = message.replace(/\s+/g, ' ').trim();
  if (code === 'TAB_AS_INDENT') return 'YAML does not allow tabs for indentation: use spaces';
  if (code === 'BAD_INDENT' || code === 'BLOCK_IN_FLOW') return `not YAML: ${cause}; check the indentation`;
  if (cause.startsWith('Nested mappings are not allowed'))
    return 'not YAML: a text with ": " must be in quotes, as in name: "note: the message"';
  if (cause.startsWith('Sequence item without')) return `not YAML: ${cause}; indent each key of an element alike`;
  if (code === 'MISSING_CHAR') return `not YAML: ${cause}; check quotes and brackets`;
  return `not YAML: ${cause}`;
}
