/** Which methods of a library a test has called, and which exist, found from the objects themselves. */

export interface Watch<T> {
  /** The object, whose calls are recorded, like those of the builders that it returns. */
  watched: T
  /** `files.public.get` for a method of the object, `FilterFiles.limit` for one of a builder. */
  called: Set<string>
  /** Every method of the object and of the builders that were returned so far. */
  methods(): string[]
}

/**
 * Watches an object made of classes; a returned value with its own `then` counts as a builder.
 * @param called collects the calls.
 */
export function watch<T extends object>(object: T, called = new Set<string>()): Watch<T> {
  const builders = new Map<string, object>()
  const wrap = <O extends object>(target: O, path: string): O =>
    new Proxy(target, {
      get(_, key) {
        const value: unknown = Reflect.get(target, key)
        if (typeof key === 'symbol') return typeof value === 'function' ? value.bind(target) : value
        const name = path ? `${path}.${key}` : key
        if (typeof value !== 'function') return isInstance(value) ? wrap(value, name) : value
        return (...args: unknown[]) => {
          called.add(name)
          const result = value.apply(target, args)
          if (!isBuilder(result)) return result
          builders.set(result.constructor.name, result)
          return wrap(result, result.constructor.name)
        }
      },
    })
  return {
    watched: wrap(object, ''),
    called,
    methods: () => [
      ...methodsOf(object, ''),
      ...[...builders].flatMap(([name, builder]) => methodsOf(builder, `${name}.`)),
    ],
  }
}

/** The methods of an instance's classes, and of the instances that it holds. */
function methodsOf(object: object, prefix: string): string[] {
  const own: string[] = []
  for (
    let type = Object.getPrototypeOf(object);
    type !== Object.prototype;
    type = Object.getPrototypeOf(type)
  )
    own.push(...Object.getOwnPropertyNames(type).filter((name) => name !== 'constructor'))
  const held = Object.entries(object).flatMap(([name, value]) =>
    isInstance(value) ? methodsOf(value, `${prefix}${name}.`) : [],
  )
  return [...new Set(own)].map((name) => prefix + name).concat(held)
}

const isInstance = (value: unknown): value is object =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.getPrototypeOf(value) !== Object.prototype

const isBuilder = (value: unknown): value is object =>
  isInstance(value) && !(value instanceof Promise) && 'then' in value
