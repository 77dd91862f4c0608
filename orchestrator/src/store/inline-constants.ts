import {
  type KyselyPlugin,
  OperationNodeTransformer,
  type PrimitiveValueListNode,
  type ValueListNode,
  ValueNode,
} from 'kysely';
import { Placeholder } from './params.ts';

/**
 * Writes the constants of a query into its text instead of sending them as parameters. Queries are compiled once, so
 * their constants come from the source; and a planner uses a partial index only for a condition that it can read.
 * Booleans become 1 and 0, as both databases store them.
 */
class ConstantsTransformer extends OperationNodeTransformer {
  protected override transformValue(node: ValueNode): ValueNode {
    const { value } = node;
    // Immediate values, which `sql.lit` creates, remain unchanged.
    if (node.immediate || value instanceof Placeholder || value instanceof Uint8Array) return node;
    return ValueNode.createImmediate(typeof value === 'boolean' ? Number(value) : value);
  }

  protected override transformPrimitiveValueList(node: PrimitiveValueListNode): PrimitiveValueListNode {
    const list: ValueListNode = {
      kind: 'ValueListNode',
      values: node.values.map((value) => this.transformValue(ValueNode.create(value))),
    };
    // The compiler checks `kind` and accepts both kinds of lists here.
    return list as unknown as PrimitiveValueListNode;
  }
}

const transformer = new ConstantsTransformer();

export const inlineConstants: KyselyPlugin = {
  transformQuery: ({ node }) => transformer.transformNode(node),
  transformResult: async ({ result }) => result,
};
