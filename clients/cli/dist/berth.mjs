#!/usr/bin/env node
var __defProp = Object.defineProperty;
var __getOwnPropNames = Object.getOwnPropertyNames;
var __knownSymbol = (name, symbol) => (symbol = Symbol[name]) ? symbol : /* @__PURE__ */ Symbol.for("Symbol." + name);
var __typeError = (msg) => {
  throw TypeError(msg);
};
var __esm = (fn, res, err) => function __init() {
  if (err) throw err[0];
  try {
    return fn && (res = (0, fn[__getOwnPropNames(fn)[0]])(fn = 0)), res;
  } catch (e) {
    throw err = [e], e;
  }
};
var __export = (target2, all) => {
  for (var name in all)
    __defProp(target2, name, { get: all[name], enumerable: true });
};
var __using = (stack, value, async) => {
  if (value != null) {
    if (typeof value !== "object" && typeof value !== "function") __typeError("Object expected");
    var dispose, inner;
    if (async) dispose = value[__knownSymbol("asyncDispose")];
    if (dispose === void 0) {
      dispose = value[__knownSymbol("dispose")];
      if (async) inner = dispose;
    }
    if (typeof dispose !== "function") __typeError("Object not disposable");
    if (inner) dispose = function() {
      try {
        inner.call(this);
      } catch (e) {
        return Promise.reject(e);
      }
    };
    stack.push([async, dispose, value]);
  } else if (async) {
    stack.push([async]);
  }
  return value;
};
var __callDispose = (stack, error, hasError) => {
  var E = typeof SuppressedError === "function" ? SuppressedError : function(e, s, m, _) {
    return _ = Error(m), _.name = "SuppressedError", _.error = e, _.suppressed = s, _;
  };
  var fail2 = (e) => error = hasError ? new E(e, error, "An error was suppressed during disposal") : (hasError = true, e);
  var next = (it) => {
    while (it = stack.pop()) {
      try {
        var result = it[1] && it[1].call(it[2]);
        if (it[0]) return Promise.resolve(result).then(next, (e) => (fail2(e), next()));
      } catch (e) {
        fail2(e);
      }
    }
    if (hasError) throw error;
  };
  return next();
};

// ../../node_modules/openapi-fetch/dist/index.mjs
function randomID() {
  return Math.random().toString(36).slice(2, 11);
}
function createClient(clientOptions) {
  let {
    baseUrl = "",
    Request: CustomRequest = globalThis.Request,
    fetch: baseFetch = globalThis.fetch,
    querySerializer: globalQuerySerializer,
    bodySerializer: globalBodySerializer,
    pathSerializer: globalPathSerializer,
    headers: baseHeaders,
    requestInitExt = void 0,
    ...baseOptions
  } = { ...clientOptions };
  requestInitExt = supportsRequestInitExt() ? requestInitExt : void 0;
  baseUrl = removeTrailingSlash(baseUrl);
  const globalMiddlewares = [];
  async function coreFetch(schemaPath, fetchOptions) {
    const {
      baseUrl: localBaseUrl,
      fetch: fetch2 = baseFetch,
      Request = CustomRequest,
      headers,
      params = {},
      parseAs = "json",
      querySerializer: requestQuerySerializer,
      bodySerializer = globalBodySerializer ?? defaultBodySerializer,
      pathSerializer: requestPathSerializer,
      body,
      middleware: requestMiddlewares = [],
      ...init
    } = fetchOptions || {};
    let finalBaseUrl = baseUrl;
    if (localBaseUrl) {
      finalBaseUrl = removeTrailingSlash(localBaseUrl) ?? baseUrl;
    }
    let querySerializer = typeof globalQuerySerializer === "function" ? globalQuerySerializer : createQuerySerializer(globalQuerySerializer);
    if (requestQuerySerializer) {
      querySerializer = typeof requestQuerySerializer === "function" ? requestQuerySerializer : createQuerySerializer({
        ...typeof globalQuerySerializer === "object" ? globalQuerySerializer : {},
        ...requestQuerySerializer
      });
    }
    const pathSerializer = requestPathSerializer || globalPathSerializer || defaultPathSerializer;
    const serializedBody = body === void 0 ? void 0 : bodySerializer(
      body,
      // Note: we declare mergeHeaders() both here and below because it’s a bit of a chicken-or-egg situation:
      // bodySerializer() needs all headers so we aren’t dropping ones set by the user, however,
      // the result of this ALSO sets the lowest-priority content-type header. So we re-merge below,
      // setting the content-type at the very beginning to be overwritten.
      // Lastly, based on the way headers work, it’s not a simple “present-or-not” check becauase null intentionally un-sets headers.
      mergeHeaders(baseHeaders, headers, params.header)
    );
    const finalHeaders = mergeHeaders(
      // with no body, we should not to set Content-Type
      serializedBody === void 0 || // if serialized body is FormData; browser will correctly set Content-Type & boundary expression
      serializedBody instanceof FormData ? {} : {
        "Content-Type": "application/json"
      },
      baseHeaders,
      headers,
      params.header
    );
    const finalMiddlewares = [...globalMiddlewares, ...requestMiddlewares];
    const requestInit = {
      redirect: "follow",
      ...baseOptions,
      ...init,
      body: serializedBody,
      headers: finalHeaders
    };
    let id;
    let options;
    let request = new Request(
      createFinalURL(schemaPath, { baseUrl: finalBaseUrl, params, querySerializer, pathSerializer }),
      requestInit
    );
    let response;
    for (const key in init) {
      if (!(key in request)) {
        request[key] = init[key];
      }
    }
    if (finalMiddlewares.length) {
      id = randomID();
      options = Object.freeze({
        baseUrl: finalBaseUrl,
        fetch: fetch2,
        parseAs,
        querySerializer,
        bodySerializer,
        pathSerializer
      });
      for (const m of finalMiddlewares) {
        if (m && typeof m === "object" && typeof m.onRequest === "function") {
          const result = await m.onRequest({
            request,
            schemaPath,
            params,
            options,
            id
          });
          if (result) {
            if (result instanceof Request) {
              request = result;
            } else if (result instanceof Response) {
              response = result;
              break;
            } else {
              throw new Error("onRequest: must return new Request() or Response() when modifying the request");
            }
          }
        }
      }
    }
    if (!response) {
      try {
        response = await fetch2(request, requestInitExt);
      } catch (error2) {
        let errorAfterMiddleware = error2;
        if (finalMiddlewares.length) {
          for (let i = finalMiddlewares.length - 1; i >= 0; i--) {
            const m = finalMiddlewares[i];
            if (m && typeof m === "object" && typeof m.onError === "function") {
              const result = await m.onError({
                request,
                error: errorAfterMiddleware,
                schemaPath,
                params,
                options,
                id
              });
              if (result) {
                if (result instanceof Response) {
                  errorAfterMiddleware = void 0;
                  response = result;
                  break;
                }
                if (result instanceof Error) {
                  errorAfterMiddleware = result;
                  continue;
                }
                throw new Error("onError: must return new Response() or instance of Error");
              }
            }
          }
        }
        if (errorAfterMiddleware) {
          throw errorAfterMiddleware;
        }
      }
      if (finalMiddlewares.length) {
        for (let i = finalMiddlewares.length - 1; i >= 0; i--) {
          const m = finalMiddlewares[i];
          if (m && typeof m === "object" && typeof m.onResponse === "function") {
            const result = await m.onResponse({
              request,
              response,
              schemaPath,
              params,
              options,
              id
            });
            if (result) {
              if (!(result instanceof Response)) {
                throw new Error("onResponse: must return new Response() when modifying the response");
              }
              response = result;
            }
          }
        }
      }
    }
    const contentLength = response.headers.get("Content-Length");
    if (response.status === 204 || request.method === "HEAD" || contentLength === "0" && !response.headers.get("Transfer-Encoding")?.includes("chunked")) {
      return response.ok ? { data: void 0, response } : { error: void 0, response };
    }
    if (response.ok) {
      const getResponseData = async () => {
        if (parseAs === "stream") {
          return response.body;
        }
        if (parseAs === "json" && !contentLength) {
          const raw = await response.text();
          return raw ? JSON.parse(raw) : void 0;
        }
        return await response[parseAs]();
      };
      return { data: await getResponseData(), response };
    }
    let error = await response.text();
    try {
      error = JSON.parse(error);
    } catch {
    }
    return { error, response };
  }
  return {
    request(method, url, init) {
      return coreFetch(url, { ...init, method: method.toUpperCase() });
    },
    /** Call a GET endpoint */
    GET(url, init) {
      return coreFetch(url, { ...init, method: "GET" });
    },
    /** Call a PUT endpoint */
    PUT(url, init) {
      return coreFetch(url, { ...init, method: "PUT" });
    },
    /** Call a POST endpoint */
    POST(url, init) {
      return coreFetch(url, { ...init, method: "POST" });
    },
    /** Call a DELETE endpoint */
    DELETE(url, init) {
      return coreFetch(url, { ...init, method: "DELETE" });
    },
    /** Call a OPTIONS endpoint */
    OPTIONS(url, init) {
      return coreFetch(url, { ...init, method: "OPTIONS" });
    },
    /** Call a HEAD endpoint */
    HEAD(url, init) {
      return coreFetch(url, { ...init, method: "HEAD" });
    },
    /** Call a PATCH endpoint */
    PATCH(url, init) {
      return coreFetch(url, { ...init, method: "PATCH" });
    },
    /** Call a TRACE endpoint */
    TRACE(url, init) {
      return coreFetch(url, { ...init, method: "TRACE" });
    },
    /** Register middleware */
    use(...middleware) {
      for (const m of middleware) {
        if (!m) {
          continue;
        }
        if (typeof m !== "object" || !("onRequest" in m || "onResponse" in m || "onError" in m)) {
          throw new Error("Middleware must be an object with one of `onRequest()`, `onResponse() or `onError()`");
        }
        globalMiddlewares.push(m);
      }
    },
    /** Unregister middleware */
    eject(...middleware) {
      for (const m of middleware) {
        const i = globalMiddlewares.indexOf(m);
        if (i !== -1) {
          globalMiddlewares.splice(i, 1);
        }
      }
    }
  };
}
function serializePrimitiveParam(name, value, options) {
  if (value === void 0 || value === null) {
    return "";
  }
  if (typeof value === "object") {
    throw new Error(
      "Deeply-nested arrays/objects aren\u2019t supported. Provide your own `querySerializer()` to handle these."
    );
  }
  return `${name}=${options?.allowReserved === true ? value : encodeURIComponent(value)}`;
}
function serializeObjectParam(name, value, options) {
  if (!value || typeof value !== "object") {
    return "";
  }
  const values = [];
  const joiner = {
    simple: ",",
    label: ".",
    matrix: ";"
  }[options.style] || "&";
  if (options.style !== "deepObject" && options.explode === false) {
    for (const k in value) {
      values.push(k, options.allowReserved === true ? value[k] : encodeURIComponent(value[k]));
    }
    const final2 = values.join(",");
    switch (options.style) {
      case "form": {
        return `${name}=${final2}`;
      }
      case "label": {
        return `.${final2}`;
      }
      case "matrix": {
        return `;${name}=${final2}`;
      }
      default: {
        return final2;
      }
    }
  }
  for (const k in value) {
    const finalName = options.style === "deepObject" ? `${name}[${k}]` : k;
    values.push(serializePrimitiveParam(finalName, value[k], options));
  }
  const final = values.join(joiner);
  return options.style === "label" || options.style === "matrix" ? `${joiner}${final}` : final;
}
function serializeArrayParam(name, value, options) {
  if (!Array.isArray(value)) {
    return "";
  }
  if (options.explode === false) {
    const joiner2 = { form: ",", spaceDelimited: "%20", pipeDelimited: "|" }[options.style] || ",";
    const final = (options.allowReserved === true ? value : value.map((v) => encodeURIComponent(v))).join(joiner2);
    switch (options.style) {
      case "simple": {
        return final;
      }
      case "label": {
        return `.${final}`;
      }
      case "matrix": {
        return `;${name}=${final}`;
      }
      // case "spaceDelimited":
      // case "pipeDelimited":
      default: {
        return `${name}=${final}`;
      }
    }
  }
  const joiner = { simple: ",", label: ".", matrix: ";" }[options.style] || "&";
  const values = [];
  for (const v of value) {
    if (options.style === "simple" || options.style === "label") {
      values.push(options.allowReserved === true ? v : encodeURIComponent(v));
    } else {
      values.push(serializePrimitiveParam(name, v, options));
    }
  }
  return options.style === "label" || options.style === "matrix" ? `${joiner}${values.join(joiner)}` : values.join(joiner);
}
function createQuerySerializer(options) {
  return function querySerializer(queryParams) {
    const search = [];
    if (queryParams && typeof queryParams === "object") {
      for (const name in queryParams) {
        const value = queryParams[name];
        if (value === void 0 || value === null) {
          continue;
        }
        if (Array.isArray(value)) {
          if (value.length === 0) {
            continue;
          }
          search.push(
            serializeArrayParam(name, value, {
              style: "form",
              explode: true,
              ...options?.array,
              allowReserved: options?.allowReserved || false
            })
          );
          continue;
        }
        if (typeof value === "object") {
          search.push(
            serializeObjectParam(name, value, {
              style: "deepObject",
              explode: true,
              ...options?.object,
              allowReserved: options?.allowReserved || false
            })
          );
          continue;
        }
        search.push(serializePrimitiveParam(name, value, options));
      }
    }
    return search.join("&");
  };
}
function defaultPathSerializer(pathname, pathParams) {
  let nextURL = pathname;
  for (const match of pathname.match(PATH_PARAM_RE) ?? []) {
    let name = match.substring(1, match.length - 1);
    let explode = false;
    let style = "simple";
    if (name.endsWith("*")) {
      explode = true;
      name = name.substring(0, name.length - 1);
    }
    if (name.startsWith(".")) {
      style = "label";
      name = name.substring(1);
    } else if (name.startsWith(";")) {
      style = "matrix";
      name = name.substring(1);
    }
    if (!pathParams || pathParams[name] === void 0 || pathParams[name] === null) {
      continue;
    }
    const value = pathParams[name];
    if (Array.isArray(value)) {
      nextURL = nextURL.replace(match, serializeArrayParam(name, value, { style, explode }));
      continue;
    }
    if (typeof value === "object") {
      nextURL = nextURL.replace(match, serializeObjectParam(name, value, { style, explode }));
      continue;
    }
    if (style === "matrix") {
      nextURL = nextURL.replace(match, `;${serializePrimitiveParam(name, value)}`);
      continue;
    }
    nextURL = nextURL.replace(match, style === "label" ? `.${encodeURIComponent(value)}` : encodeURIComponent(value));
  }
  return nextURL;
}
function defaultBodySerializer(body, headers) {
  if (body instanceof FormData) {
    return body;
  }
  if (headers) {
    const contentType = headers.get instanceof Function ? headers.get("Content-Type") ?? headers.get("content-type") : headers["Content-Type"] ?? headers["content-type"];
    if (contentType === "application/x-www-form-urlencoded") {
      return new URLSearchParams(body).toString();
    }
  }
  return JSON.stringify(body);
}
function createFinalURL(pathname, options) {
  let finalURL = `${options.baseUrl}${pathname}`;
  if (options.params?.path) {
    finalURL = options.pathSerializer(finalURL, options.params.path);
  }
  let search = options.querySerializer(options.params.query ?? {});
  if (search.startsWith("?")) {
    search = search.substring(1);
  }
  if (search) {
    finalURL += `?${search}`;
  }
  return finalURL;
}
function mergeHeaders(...allHeaders) {
  const finalHeaders = new Headers();
  for (const h of allHeaders) {
    if (!h || typeof h !== "object") {
      continue;
    }
    const iterator = h instanceof Headers ? h.entries() : Object.entries(h);
    for (const [k, v] of iterator) {
      if (v === null) {
        finalHeaders.delete(k);
      } else if (Array.isArray(v)) {
        for (const v2 of v) {
          finalHeaders.append(k, v2);
        }
      } else if (v !== void 0) {
        finalHeaders.set(k, v);
      }
    }
  }
  return finalHeaders;
}
function removeTrailingSlash(url) {
  if (url.endsWith("/")) {
    return url.substring(0, url.length - 1);
  }
  return url;
}
var PATH_PARAM_RE, supportsRequestInitExt;
var init_dist = __esm({
  "../../node_modules/openapi-fetch/dist/index.mjs"() {
    PATH_PARAM_RE = /\{[^{}]+\}/g;
    supportsRequestInitExt = () => {
      return typeof process === "object" && Number.parseInt(process?.versions?.node?.substring(0, 2)) >= 18 && process.versions.undici;
    };
  }
});

// ../typescript/src/retries.ts
async function send(request, { retries, fetch: fetch2 }) {
  const tries = isRepeatable(request) ? retries : 0;
  for (let failed = 0; ; failed++) {
    const isLast = failed >= tries;
    let waitMs = FIRST_MS * 2 ** failed;
    try {
      const response = await fetch2(isLast ? request : request.clone());
      if (isLast || !RETRIED.has(response.status)) return response;
      waitMs = retryAfterMs(response) ?? waitMs;
      if (waitMs > LONGEST_MS) return response;
      await response.body?.cancel();
    } catch (error) {
      if (isLast || request.signal.aborted) throw error;
    }
    await pause(waitMs, request.signal);
  }
}
function retryAfterMs({ headers }) {
  const text5 = headers.get("retry-after");
  if (text5 === null) return void 0;
  const ms = /^\d+$/.test(text5) ? Number(text5) * 1e3 : Date.parse(text5) - Date.now();
  return Number.isNaN(ms) ? void 0 : Math.max(ms, 0);
}
function pause(ms, signal) {
  return new Promise((resolve2, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve2();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
var RETRIED, FIRST_MS, LONGEST_MS, isRepeatable;
var init_retries = __esm({
  "../typescript/src/retries.ts"() {
    "use strict";
    RETRIED = /* @__PURE__ */ new Set([429, 503]);
    FIRST_MS = 500;
    LONGEST_MS = 3e4;
    isRepeatable = ({ method, headers }) => method === "GET" || method === "HEAD" || headers.has("idempotency-key");
  }
});

// ../typescript/src/client.ts
function trimSlashes(url) {
  let end = url.length;
  while (url[end - 1] === "/") end--;
  return url.slice(0, end);
}
function createClient2(options = {}) {
  const { url = "", key, headers, retries = 3, fetch: fetch2 = globalThis.fetch } = options;
  return createClient({
    baseUrl: trimSlashes(url),
    headers: { ...key && { authorization: `Bearer ${key}` }, ...headers },
    fetch: (request) => send(request, { retries, fetch: fetch2 })
  });
}
var init_client = __esm({
  "../typescript/src/client.ts"() {
    "use strict";
    init_dist();
    init_retries();
  }
});

// ../typescript/src/errors.ts
async function unwrap(asked) {
  const { data, error, response } = await asked;
  if (!response.ok || data === void 0) throw errorOf(response, error);
  return data;
}
function errorOf({ status, statusText: statusText2, headers }, body) {
  const said = messageIn(body) ?? `${status} ${statusText2}`.trim();
  const detail = headers.get("error-detail");
  return new RequestError(status, detail ? `${said}: ${detail}` : said, headers);
}
function messageIn(body) {
  const said = body?.error;
  if (typeof said === "string") return said;
  const { details: details2, message } = said ?? {};
  return [details2, message].find((text5) => typeof text5 === "string");
}
var RequestError;
var init_errors = __esm({
  "../typescript/src/errors.ts"() {
    "use strict";
    RequestError = class extends Error {
      name = "RequestError";
      status;
      /** The reason for programs, from `Error-Code`. */
      code;
      /** Finds the request in Berth's log. */
      requestId;
      /** Seconds until a retry may succeed. */
      retryAfter;
      constructor(status, message, headers = new Headers()) {
        super(message);
        this.status = status;
        this.code = headers.get("error-code") ?? void 0;
        this.requestId = headers.get("x-request-id") ?? void 0;
        this.retryAfter = Number(headers.get("retry-after")) || void 0;
      }
    };
  }
});

// ../typescript/src/operations.ts
async function waitForOperation(berth, started, { onProgress, signal } = {}) {
  const id = typeof started === "string" ? started : await operationOf(started);
  for (let wait = 1; ; wait = Math.min(2 * wait, WAIT_S)) {
    const { data } = await unwrap(
      berth.GET("/v0/operations/{id}", {
        params: { path: { id }, query: { wait } },
        ...signal && { signal }
      })
    );
    if (data.state === "succeeded") return data;
    if (data.finished_at) throw new OperationError(data);
    onProgress?.(data);
  }
}
async function operationOf(started) {
  const result = await started;
  await unwrap(result);
  const id = result.response.headers.get("operation-id");
  if (!id) throw new Error("this request starts no operation");
  return id;
}
var WAIT_S, startNow, OperationError;
var init_operations = __esm({
  "../typescript/src/operations.ts"() {
    "use strict";
    init_errors();
    WAIT_S = 30;
    startNow = (key = crypto.randomUUID()) => ({
      Prefer: "respond-async",
      "Idempotency-Key": key
    });
    OperationError = class extends RequestError {
      name = "OperationError";
      operation;
      constructor(operation) {
        super(500, operation.error ?? operation.state);
        this.operation = operation;
      }
    };
  }
});

// ../typescript/src/pages.ts
async function* allItems(read3) {
  for (let page = {}; ; ) {
    const result = await read3(page);
    const body = await unwrap(result);
    const list = body.data ?? body;
    const items = Object.values(list).find(Array.isArray);
    yield* items ?? [];
    const next = list.next_page_token ?? result.response.headers.get("next-page-token");
    if (!next) return;
    page = { pageToken: String(next) };
  }
}
var init_pages = __esm({
  "../typescript/src/pages.ts"() {
    "use strict";
    init_errors();
  }
});

// ../typescript/src/server-events.ts
async function* serverEvents(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      heard?.();
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      yield* blocks.map(parse).filter(({ id, data }) => id !== void 0 || data !== "");
    }
  } finally {
    void reader.cancel().catch(() => {
    });
  }
}
function parse(block) {
  const lines = block.split("\n");
  const field = (name) => lines.filter((line) => line.split(":", 1)[0] === name).map((line) => line.slice(name.length + 1).replace(/^ /, ""));
  return {
    id: field("id").at(-1),
    name: field("event").at(-1) ?? "message",
    data: field("data").join("\n")
  };
}
var init_server_events = __esm({
  "../typescript/src/server-events.ts"() {
    "use strict";
  }
});

// ../typescript/src/sign-in-code.ts
function signInCode(challenge) {
  const code = Array.from(challenge.slice(0, 8), (one) => LETTERS[BASE64URL.indexOf(one) % 32]).join("");
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}
var BASE64URL, LETTERS;
var init_sign_in_code = __esm({
  "../typescript/src/sign-in-code.ts"() {
    "use strict";
    BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
  }
});

// ../typescript/src/uploads.ts
async function upload(berth, content, options = {}) {
  if (content.size > FORM_BYTES) return uploadInPieces(berth, content, options);
  options.onProgress?.(0, content.size);
  const file = await sendForm(berth, [[options.name ?? nameOf(content), content]], options);
  options.onProgress?.(content.size, content.size);
  return file;
}
function uploadFolder(berth, name, files, options = {}) {
  const parts = Array.from(files, ([path, content]) => [`${name}/${path}`, content]);
  return sendForm(berth, parts, options);
}
async function sendForm(berth, files, { name, network = "private", groupId, keyvalues, signal }) {
  const form = new FormData();
  form.set("network", network);
  if (name) form.set("name", name);
  if (groupId) form.set("group_id", groupId);
  if (keyvalues) form.set("keyvalues", JSON.stringify(keyvalues));
  for (const [path, content] of files) form.append("file", content, path);
  const body = await unwrap(
    berth.POST("/v3/files", {
      body: form,
      bodySerializer: () => form,
      ...signal && { signal }
    })
  );
  return body.data;
}
async function uploadInPieces(berth, content, { name, network = "private", groupId, keyvalues, onProgress, signal }) {
  const filename = name ?? nameOf(content);
  const { response, error } = await berth.POST("/v3/files", {
    headers: {
      ...TUS,
      "upload-length": `${content.size}`,
      "upload-metadata": encodeMetadata({
        filename,
        filetype: content.type,
        network,
        group_id: groupId,
        keyvalues: keyvalues && JSON.stringify(keyvalues)
      })
    },
    ...signal && { signal }
  });
  if (response.status !== 201) throw errorOf(response, error);
  const [id = "", token = ""] = (response.headers.get("location") ?? "").split("/").slice(-2);
  const params = { path: { id, token } };
  let cid = null;
  for (let offset = 0, failures = 0; offset < content.size; ) {
    onProgress?.(offset, content.size);
    try {
      const piece = content.slice(offset, offset + PIECE_BYTES);
      const sent = await berth.PATCH("/v3/files/tus/{id}/{token}", {
        params,
        headers: {
          ...TUS,
          "upload-offset": `${offset}`,
          "content-type": "application/offset+octet-stream"
        },
        body: piece,
        bodySerializer: () => piece,
        ...signal && { signal }
      });
      if (sent.response.status !== 204) throw errorOf(sent.response, sent.error);
      offset = Number(sent.response.headers.get("upload-offset"));
      cid = sent.response.headers.get("upload-cid");
      failures = 0;
    } catch (failure) {
      if (signal?.aborted || !isRetried(failure) || ++failures >= TRIES) throw failure;
      await pause(500 * 2 ** failures, signal);
      const asked = await berth.HEAD("/v3/files/tus/{id}/{token}", { params, headers: TUS }).catch(() => void 0);
      if (!asked?.response.ok) continue;
      offset = Number(asked.response.headers.get("upload-offset"));
      cid = asked.response.headers.get("upload-cid");
    }
  }
  onProgress?.(content.size, content.size);
  const query = { cid: cid ?? "", limit: 1 };
  const { data } = await berth.GET("/v3/files/{network}", { params: { path: { network }, query } });
  const known = data?.data.files[0];
  return { id: known?.id ?? id, cid: cid ?? "", name: known?.name ?? filename, size: content.size, network };
}
function encodeMetadata(pairs2) {
  return Object.entries(pairs2).filter(([, value]) => value).map(([key, value]) => `${key} ${btoa(String.fromCharCode(...new TextEncoder().encode(value)))}`).join(",");
}
var FORM_BYTES, PIECE_BYTES, TUS, RETRIED2, TRIES, isRetried, nameOf;
var init_uploads = __esm({
  "../typescript/src/uploads.ts"() {
    "use strict";
    init_errors();
    init_retries();
    FORM_BYTES = 16 * 1024 * 1024;
    PIECE_BYTES = 8 * 1024 * 1024;
    TUS = { "tus-resumable": "1.0.0" };
    RETRIED2 = /* @__PURE__ */ new Set([409, 423, 429, 500, 502, 503, 504]);
    TRIES = 6;
    isRetried = (failure) => !(failure instanceof RequestError) || RETRIED2.has(failure.status);
    nameOf = (content) => content.name ?? "file";
  }
});

// ../typescript/src/index.ts
var init_src = __esm({
  "../typescript/src/index.ts"() {
    "use strict";
    init_client();
    init_errors();
    init_operations();
    init_pages();
    init_server_events();
    init_sign_in_code();
    init_uploads();
  }
});

// src/errors.ts
function explain(error, place) {
  if (error instanceof UsageError) return { message: error.message, exit: EXIT.usage };
  if (error instanceof AdvisedError) return error;
  if (error instanceof OperationError) {
    const { id, kind } = error.operation;
    return { message: `${kind}: ${error.message}`, advice: `berth operations show ${id}`, exit: EXIT.failed };
  }
  if (error instanceof RequestError) return explainRequest(error, place);
  const lost = explainConnection(error, place);
  if (lost) return lost;
  const { message, syscall } = error;
  return { message: syscall ? message : `${error.stack ?? error}`, exit: EXIT.failed };
}
function explainRequest({ status, code, message, retryAfter, requestId }, place) {
  const id = requestId && status >= 500 ? `the log of ${place} has more under ${requestId}` : void 0;
  if (status === 401)
    return { message, advice: `get a key that works there: berth login ${place}`, exit: EXIT.signIn };
  if (code === "missing_scope")
    return {
      message,
      advice: "use a key with that scope: npx berth keys create --scopes \u2026",
      exit: EXIT.forbidden
    };
  if (status === 402 || status === 403) return { message, exit: EXIT.forbidden };
  if (status === 404)
    return { message, advice: "is it in another workspace? berth whoami", exit: EXIT.missing };
  if ([409, 412, 422, 423].includes(status)) return { message, exit: EXIT.conflict };
  if ([429, 502, 503, 504, 507].includes(status)) {
    const again = retryAfter ? `try again in ${retryAfter} s` : "try again later";
    return { message, advice: [again, id].filter(Boolean).join("; "), exit: EXIT.unavailable };
  }
  return { message, advice: id, exit: EXIT.failed };
}
function explainConnection(error, place = "Berth") {
  if (!(error instanceof TypeError)) return void 0;
  const cause = error.cause;
  const code = cause?.code ?? cause?.errors?.[0]?.code;
  if (!code && !/fetch failed|terminated/.test(error.message)) return void 0;
  const isCertificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code ?? "");
  const advice = isCertificate ? "its certificate is not trusted: set NODE_EXTRA_CA_CERTS to the file of its authority" : CONNECTION[code ?? ""] ?? cause?.message;
  return { message: `cannot reach ${place}${code ? ` (${code})` : ""}`, advice, exit: EXIT.unavailable };
}
var EXIT, UsageError, AdvisedError, CONNECTION;
var init_errors2 = __esm({
  "src/errors.ts"() {
    "use strict";
    init_src();
    EXIT = {
      failed: 1,
      usage: 2,
      signIn: 3,
      forbidden: 4,
      missing: 5,
      conflict: 6,
      unavailable: 7,
      interrupted: 130
    };
    UsageError = class extends Error {
    };
    AdvisedError = class extends Error {
      advice;
      exit;
      constructor(message, advice, exit = EXIT.failed) {
        super(message);
        this.advice = advice;
        this.exit = exit;
      }
    };
    CONNECTION = {
      ECONNREFUSED: "nothing listens there: is Berth running, and is this its port?",
      ENOTFOUND: "there is no such host: check the URL",
      EAI_AGAIN: "the name cannot be resolved: check the network",
      ETIMEDOUT: "it does not answer: check the network, or a firewall",
      UND_ERR_CONNECT_TIMEOUT: "it does not answer: check the network, or a firewall",
      UND_ERR_SOCKET: "the connection broke: try again",
      ECONNRESET: "the connection broke: try again",
      ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS on this port: try http://"
    };
  }
});

// src/remote-terminal.ts
var remote_terminal_exports = {};
__export(remote_terminal_exports, {
  joinTerminal: () => joinTerminal
});
import { setTimeout as delay } from "node:timers/promises";
async function joinTerminal(remote) {
  const { stdin, stdout } = process;
  const session = new Session(remote);
  const restore = () => {
    stdin.setRawMode(false);
    stdout.write(RESET + (session.isAlternate ? `${ALTERNATE}l` : ""));
  };
  const killed = (signal) => {
    restore();
    process.removeListener(signal, killed);
    process.kill(process.pid, signal);
  };
  process.once("exit", restore);
  for (const signal of KILLED) process.once(signal, killed);
  stdin.setRawMode(true).resume().on("data", session.type);
  stdout.on("resize", session.resize);
  try {
    return await session.run();
  } finally {
    stdin.off("data", session.type).pause();
    stdout.off("resize", session.resize);
    for (const signal of KILLED) process.removeListener(signal, killed);
    process.removeListener("exit", restore);
    restore();
  }
}
var CTRL_C2, ENTER, POLICY, PIECE_BYTES2, MAX_WAITING, RETRIES_MS, RESET, ALTERNATE, KILLED, Session, size;
var init_remote_terminal = __esm({
  "src/remote-terminal.ts"() {
    "use strict";
    init_errors2();
    CTRL_C2 = 3;
    ENTER = 104;
    POLICY = 1008;
    PIECE_BYTES2 = 16384;
    MAX_WAITING = 1048576;
    RETRIES_MS = [0, 500, 1e3, 2e3, 4e3, 8e3, 15e3, 3e4, 6e4];
    RESET = "\x1B[0m\x1B[?25h\x1B[?1l\x1B>\x1B[?1000l\x1B[?1002l\x1B[?1003l\x1B[?1006l\x1B[?2004l";
    ALTERNATE = "\x1B[?1049";
    KILLED = ["SIGTERM", "SIGHUP"];
    Session = class {
      /** True while a program shows the alternate screen. */
      isAlternate = false;
      #remote;
      #socket;
      #terminal;
      /** The position in the output of the terminal. */
      #position = 0;
      #end;
      #left = new AbortController();
      constructor(remote) {
        this.#remote = remote;
      }
      /** Connects, again and again, until the terminal has ended. */
      async run() {
        for (let failed = 0; ; failed++) {
          const wait = RETRIES_MS[failed];
          if (wait === void 0) return { problem: "the connection is lost", code: "lost" };
          if (failed === 2)
            process.stdout.write("\r\n\x1B[2m[the connection is lost: trying again, Ctrl-C gives up]\x1B[0m\r\n");
          await delay(wait, void 0, { signal: this.#left.signal }).catch(() => {
          });
          if (this.#end) return this.#end;
          const before = this.#position;
          const hadTerminal = this.#terminal;
          await this.#connect();
          if (this.#end) return this.#end;
          if (this.#terminal !== hadTerminal || this.#position > before) failed = 0;
        }
      }
      type = (bytes2) => {
        const socket = this.#socket;
        if (socket?.readyState !== WebSocket.OPEN) {
          if (bytes2.includes(CTRL_C2)) this.#leave();
          return;
        }
        for (let at = 0; at < bytes2.length; at += PIECE_BYTES2) socket.send(bytes2.subarray(at, at + PIECE_BYTES2));
        if (socket.bufferedAmount > MAX_WAITING) void this.#drain(socket);
      };
      /** Stops trying. */
      #leave() {
        this.#end = { code: EXIT.interrupted };
        this.#left.abort();
        this.#socket?.close();
      }
      resize = () => {
        const socket = this.#socket;
        if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: "resize", ...size() }));
      };
      /** Stops reading what is pasted until the connection has caught up. */
      async #drain(socket) {
        process.stdin.pause();
        while (socket.readyState === WebSocket.OPEN && socket.bufferedAmount > MAX_WAITING / 2) await delay(20);
        process.stdin.resume();
      }
      /** Resolves when the connection has ended, or could not be opened. */
      #connect() {
        const { columns: columns2, rows } = size();
        const query = new URLSearchParams({ columns: `${columns2}`, rows: `${rows}` });
        if (this.#terminal) query.set("terminal", this.#terminal);
        if (this.#terminal) query.set("after", `${this.#position}`);
        const Socket = WebSocket;
        const socket = new Socket(`${this.#remote.url}?${query}`, { headers: this.#remote.headers });
        socket.binaryType = "arraybuffer";
        this.#socket = socket;
        return new Promise((resolve2) => {
          socket.addEventListener("message", ({ data }) => {
            if (typeof data === "string") return this.#read(JSON.parse(data));
            this.#position += data.byteLength;
            const bytes2 = Buffer.from(data);
            const last = bytes2.lastIndexOf(ALTERNATE);
            if (last >= 0) this.isAlternate = bytes2[last + ALTERNATE.length] === ENTER;
            process.stdout.write(bytes2);
          });
          socket.addEventListener("error", () => socket.close());
          socket.addEventListener("close", ({ code, reason: reason2 }) => {
            if (code === POLICY) this.#end ??= { problem: reason2, code: "refused" };
            resolve2();
          });
        });
      }
      #read(message) {
        if (message.type === "ready") {
          this.#terminal = message.terminal;
          this.#position = message.from;
        } else if (message.type === "exit") {
          const { code, reason: reason2 } = message;
          this.#end = { code, ...reason2 !== void 0 && { reason: reason2 } };
        } else if (message.type === "taken")
          this.#end = { problem: "the terminal was opened elsewhere", code: "taken" };
        else if (!this.#mayRetry(message.code)) this.#end = { problem: message.message, code: message.code };
      }
      /** An agent that restarts is not ready for some seconds; a first connection fails at once. */
      #mayRetry(code) {
        return this.#terminal !== void 0 && code === "agent_not_ready";
      }
    };
    size = () => ({ columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 });
  }
});

// src/main.ts
init_src();

// package.json
var package_default = {
  name: "@berth/cli",
  version: "0.4.0",
  description: "Command line for any Berth: files on IPFS and AI agents",
  license: "MIT",
  type: "module",
  bin: {
    berth: "dist/berth.mjs"
  },
  files: [
    "dist"
  ],
  engines: {
    node: ">=20"
  }
};

// src/command.ts
init_errors2();
import { parseArgs } from "node:util";
function command(entry) {
  return { usage: "", options: {}, ...entry };
}
var GLOBAL = {
  json: { about: "print JSON" },
  profile: { about: "use this profile instead of the current one", value: "name", short: "p" },
  help: { about: "show this help", short: "h" }
};
function parse2(command2, words) {
  const all = { ...command2.options, ...GLOBAL };
  const spec = specOf(all);
  const own = command2.isOpenEnded ? upToFirst(words, spec) : words.length;
  const { values, positionals } = read(words.slice(0, own), spec);
  const rest = words.slice(own);
  const args = [...positionals, ...rest[0] === "--" ? rest.slice(1) : rest];
  const options = {};
  for (const [name, { value, many, choices }] of Object.entries(all)) {
    const given = values[name] ?? (many ? [] : value ? void 0 : false);
    for (const one of choices ? [given].flat() : [])
      if (one !== void 0 && !choices?.includes(String(one)))
        throw new UsageError(`--${name}: ${one} is none of ${choices?.join(", ")}`);
    options[name] = given;
  }
  if (!options.help) checkCount(command2, args);
  return { args, options };
}
function readLoosely(command2, words) {
  const options = specOf({ ...command2.options, ...GLOBAL });
  const { values, positionals } = parseArgs({ args: words, options, strict: false, allowPositionals: true });
  return { args: positionals, profile: typeof values.profile === "string" ? values.profile : void 0 };
}
var specOf = (options) => Object.fromEntries(
  Object.entries(options).map(([name, { value, short, many }]) => [
    name,
    { type: value ? "string" : "boolean", ...short && { short }, ...many && { multiple: true } }
  ])
);
function read(args, options) {
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error.message.split(". ")[0] ?? "");
  }
}
function upToFirst(words, options) {
  const { tokens } = parseArgs({ args: words, options, strict: false, allowPositionals: true, tokens: true });
  const first = tokens.find(({ kind }) => kind === "positional");
  return first ? first.index + 1 : words.length;
}
var argumentsOf = (usage) => usage.split(" ").filter(Boolean).map((word) => ({
  name: word.replace(/^[<[]|\.{3}|[>\]]$/g, ""),
  isOptional: word.startsWith("["),
  isMany: word.includes("...")
}));
function checkCount(command2, args) {
  const known = argumentsOf(command2.usage);
  const missing = known.filter(({ isOptional }) => !isOptional)[args.length];
  if (missing) throw new UsageError(`${missing.name} is missing`);
  if (args.length > known.length && !known.at(-1)?.isMany)
    throw new UsageError(`${JSON.stringify(args[known.length])} is one argument too many`);
}

// src/commands/agent-files.ts
init_src();
import { createWriteStream, openAsBlob as openAsBlob2 } from "node:fs";
import { basename as basename2 } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

// src/find.ts
init_src();
init_errors2();
var AGENT_ID = /^x[0-9a-z]{7}$/;
var UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
var listAgents = (berth, most = Number.POSITIVE_INFINITY) => collect(
  allItems((page) => berth.GET("/v0/agents", { params: { query: page } })),
  most
);
async function agentIdOf(berth, named = "") {
  if (AGENT_ID.test(named)) return named;
  const agents = (await listAgents(berth)).filter(({ name }) => name === named);
  const [agent, second] = agents;
  if (!agent)
    throw new AdvisedError(`no agent is called ${named}`, "berth agents ls lists them", EXIT.missing);
  if (second)
    throw new AdvisedError(
      `${agents.length} agents are called ${named}: ${agents.map(({ agentId }) => agentId).join(", ")}`,
      "name one of them by its id",
      EXIT.usage
    );
  return agent.agentId;
}
var NETWORKS = ["public", "private"];
async function findFile(berth, named = "") {
  const found = await Promise.all(
    NETWORKS.map(async (network) => {
      if (UUID.test(named)) {
        const { data: data2, response } = await berth.GET("/v3/files/{network}/{id}", {
          params: { path: { network, id: named } }
        });
        if (response.status === 404) return void 0;
        return data2 && { ...data2.data, network };
      }
      const query = { cid: named, limit: 1 };
      const { data } = await unwrap(
        berth.GET("/v3/files/{network}", { params: { path: { network }, query } })
      );
      return data.files[0] && { ...data.files[0], network };
    })
  );
  const file = found.find((one) => one !== void 0);
  if (!file)
    throw new AdvisedError(`no file has the id or CID ${named}`, "berth files ls lists them", EXIT.missing);
  return file;
}
async function collect(items, most) {
  const read3 = [];
  for await (const item of items) {
    if (read3.length >= most) break;
    read3.push(item);
  }
  return read3;
}

// src/terminal.ts
import { stripVTControlCharacters, styleText } from "node:util";
var isTerminal = (stream = process.stdout) => stream.isTTY === true;
function paint(style, text5, stream = process.stdout) {
  const isPlain = !isTerminal(stream) || Boolean(process.env.NO_COLOR) || process.env.TERM === "dumb";
  return isPlain || text5 === "" ? text5 : styleText(style, text5, { validateStream: false });
}
var columns = (stream = process.stdout) => stream.columns || 80;
var harmless = (text5) => stripVTControlCharacters(text5).replace(new RegExp("\\p{Cc}+", "gu"), " ");
var harmlessLines = (text5) => stripVTControlCharacters(text5).replace(new RegExp("(?![\\n\\t])\\p{Cc}+", "gu"), "");
var WIDE = /[\p{Emoji_Presentation}\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}]/u;
var segments;
function widthOf(text5) {
  const plain = stripVTControlCharacters(text5);
  if (/^[\x20-\x7e]*$/.test(plain)) return plain.length;
  segments ??= new Intl.Segmenter();
  let width = 0;
  for (const { segment } of segments.segment(plain)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}
var padEnd = (text5, width) => text5 + " ".repeat(Math.max(0, width - widthOf(text5)));

// src/format.ts
function table(rows, none = "none") {
  if (rows.length === 0) return none;
  const names = Object.keys(rows[0] ?? {});
  const cells = [names, ...rows.map((row) => names.map((name) => cell(row[name])))];
  const widths = names.map((_, column) => Math.max(...cells.map((line) => widthOf(line[column] ?? ""))));
  if (isTerminal()) narrow(widths, columns());
  return cells.map((line, index) => {
    const text5 = line.map((text6, column) => padEnd(cut(text6, widths[column] ?? 0), widths[column] ?? 0)).join("  ").trimEnd();
    return index === 0 ? paint("dim", text5) : text5;
  }).join("\n");
}
function details(fields) {
  const known = Object.entries(fields).filter(([, value]) => value !== void 0);
  const width = Math.max(...known.map(([name]) => widthOf(name)));
  return known.map(([name, value]) => `${paint("dim", padEnd(name, width))}  ${cell(value)}`).join("\n");
}
var LEAST = 12;
function narrow(widths, room) {
  const total = () => widths.reduce((sum, width) => sum + width, 0) + 2 * (widths.length - 1);
  for (let over = total() - room; over > 0; over = total() - room) {
    const widest = widths.indexOf(Math.max(...widths));
    const others = widths.filter((_, column) => column !== widest);
    const floor = Math.max(LEAST, ...others);
    const width = widths[widest] ?? 0;
    const next = Math.max(width - over, Math.min(floor, width - 1));
    if (next < LEAST) return;
    widths[widest] = next;
  }
}
var cut = (text5, width) => widthOf(text5) <= width ? text5 : `${Array.from(text5).slice(0, width - 1).join("")}\u2026`;
function cell(value) {
  const text5 = Array.isArray(value) ? value.join(", ") : String(value ?? "");
  return harmless(text5) || "-";
}
var UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
function bytes(count2) {
  const unit = count2 < 1 ? 0 : Math.min(Math.floor(Math.log2(count2) / 10), UNITS.length - 1);
  const value = count2 / 1024 ** unit;
  return `${unit === 0 ? value : value.toFixed(value < 100 ? 1 : 0)} ${UNITS[unit]}`;
}
var STEPS = [
  ["d", 86400],
  ["h", 3600],
  ["min", 60],
  ["s", 1]
];
function ago(time, now = Date.now()) {
  if (time === null || time === void 0) return "-";
  const date = new Date(time);
  if (!isTerminal()) return date.toISOString();
  return `${span(now - date.getTime())} ago`;
}
function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1e3));
  const [unit, size2] = STEPS.find(([, size3]) => seconds >= size3) ?? ["s", 1];
  return `${Math.floor(seconds / size2)} ${unit}`;
}
function readSpan(text5) {
  const [, amount, unit] = /^(\d{1,6})\s*(s|m|min|h|d)$/.exec(text5) ?? [];
  const size2 = STEPS.find(([name]) => name === (unit === "m" ? "min" : unit))?.[1];
  return amount && size2 ? Number(amount) * size2 * 1e3 : void 0;
}

// src/local-files.ts
import { openAsBlob } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { buffer } from "node:stream/consumers";
async function openLocal(path, { withHidden = false } = {}) {
  const name = basename(resolve(path));
  if (!(await stat(path)).isDirectory()) {
    const content2 = await openAsBlob(path);
    return { name, content: content2, bytes: content2.size, hidden: 0 };
  }
  const content = [];
  let hidden = 0;
  const walk = async (folder, within) => {
    const entries = await readdir(folder, { withFileTypes: true });
    for (const entry of entries.sort((a, b) => a.name < b.name ? -1 : 1)) {
      if (entry.name.startsWith(".") && !withHidden) {
        hidden++;
        continue;
      }
      const at = join(folder, entry.name);
      const info = entry.isSymbolicLink() ? await stat(at) : entry;
      if (info.isDirectory()) await walk(at, `${within}${entry.name}/`);
      else if (info.isFile()) content.push([`${within}${entry.name}`, await openAsBlob(at)]);
    }
  };
  await walk(path, "");
  return { name, content, bytes: content.reduce((sum, [, { size: size2 }]) => sum + size2, 0), hidden };
}
var stdinAsBlob = async () => new Blob([await buffer(process.stdin)]);

// src/stream.ts
var streamOf = (body) => body;

// src/commands/agent-files.ts
var agentFileCommands = [
  command({
    name: "agents files ls",
    summary: "list a folder of an agent",
    usage: "<agent> [path]",
    async run({ berth, args: [named, path] }) {
      const agentId = await agentIdOf(berth, named);
      const data = await unwrap(
        berth.GET("/v0/agents/{agentId}/files/list", {
          params: { path: { agentId }, query: { ...path !== void 0 && { path } } }
        })
      );
      const rows = data.entries.map(({ name, type, size: size2, modifiedAt }) => ({
        name: type === "directory" ? `${name}/` : name,
        size: type === "directory" ? null : bytes(size2),
        modified: ago(modifiedAt)
      }));
      return { data, text: table(rows, "the folder is empty") };
    }
  }),
  command({
    name: "agents files get",
    summary: "download a file of an agent, or print it with `-`",
    usage: "<agent> <path> [to]",
    async run({ berth, args: [named, path = "", to = basename2(path)], json, signal }) {
      const agentId = await agentIdOf(berth, named);
      const body = await unwrap(
        berth.GET("/v0/agents/{agentId}/files", {
          params: { path: { agentId }, query: { path } },
          parseAs: "stream",
          signal
        })
      );
      const stream = Readable.fromWeb(streamOf(body));
      if (to === "-") {
        await pipeline(stream, process.stdout, { end: false });
        return;
      }
      await pipeline(stream, createWriteStream(to));
      return { data: { path, to }, text: json ? "" : `${path} \u2192 ${to}` };
    }
  }),
  command({
    name: "agents files put",
    summary: "write a file of an agent; `-` reads stdin",
    usage: "<agent> <file> <path>",
    async run({ berth, args: [named, file = "", path = ""], signal }) {
      const agentId = await agentIdOf(berth, named);
      const content = file === "-" ? await stdinAsBlob() : await openAsBlob2(file);
      const data = await unwrap(
        berth.PUT("/v0/agents/{agentId}/files", {
          params: { path: { agentId }, query: { path } },
          body: "",
          bodySerializer: () => content,
          headers: { "content-type": "application/octet-stream" },
          signal
        })
      );
      return { data, text: `${data.path}  ${bytes(data.size)}` };
    }
  }),
  command({
    name: "agents files rm",
    summary: "delete a file or a folder of an agent",
    usage: "<agent> <path>",
    async run({ berth, args: [named, path = ""] }) {
      const agentId = await agentIdOf(berth, named);
      const params = { path: { agentId }, query: { path } };
      const data = await unwrap(berth.DELETE("/v0/agents/{agentId}/files", { params }));
      return { data, text: `deleted ${data.path}` };
    }
  })
];

// src/commands/agent-secrets.ts
init_src();
init_errors2();

// src/prompt.ts
init_errors2();
import { text } from "node:stream/consumers";
async function readSecret(question) {
  const secret = process.stdin.isTTY ? await ask(question) : (await text(process.stdin)).replace(/\r?\n$/, "");
  if (!secret) throw new UsageError("it must not be empty");
  return secret;
}
var CTRL_C = "";
var CTRL_D = "";
var ERASE = ["\x7F", "\b"];
function ask(question) {
  const { stdin, stderr } = process;
  return new Promise((resolve2) => {
    let typed = "";
    const end = () => {
      stdin.off("data", read3).setRawMode(false).pause();
      stderr.write("\n");
    };
    const read3 = (data) => {
      for (const character of data) {
        if (character === CTRL_C) {
          end();
          process.kill(process.pid, "SIGINT");
          return;
        }
        if (character === "\r" || character === "\n" || character === CTRL_D) {
          end();
          resolve2(typed.trim());
          return;
        }
        typed = ERASE.includes(character) ? typed.slice(0, -1) : typed + character;
      }
    };
    stderr.write(question);
    stdin.setEncoding("utf8").setRawMode(true).resume().on("data", read3);
  });
}

// src/commands/agent-secrets.ts
var agentSecretCommands = [
  command({
    name: "agents secrets ls",
    summary: "list the secrets of an agent, without their values",
    usage: "<agent>",
    async run({ berth, args }) {
      const path = { agentId: await agentIdOf(berth, args[0]) };
      const { secrets } = await unwrap(berth.GET("/v0/agents/{agentId}/secrets", { params: { path } }));
      const rows = secrets.map(({ name, updatedAt, synced, readable, hosts }) => ({
        name,
        changed: ago(updatedAt),
        "agent reads it": readable ? "yes" : "no",
        hosts: hosts?.join(" ") ?? "",
        applied: synced ? "yes" : "at the next restart"
      }));
      return { data: secrets, text: table(rows) };
    }
  }),
  command({
    name: "agents secrets set",
    summary: "give an agent a secret; the value is asked for, or read from stdin",
    usage: "<agent> <name>",
    options: {
      host: {
        about: "only this host gets the value, and the agent a placeholder",
        value: "host",
        many: true
      },
      via: { about: "how programs send it: bearer, basic, header:NAME or query:NAME", value: "way" }
    },
    more: `A secret of the workspace with this name gets the new value, for all agents that have it, and keeps
its hosts unless others are given. It applies at the agent's next restart; a model provider's first
key restarts it by itself.

  berth agents secrets set Researcher CATALOGUE_KEY < key.txt
  berth agents secrets set Researcher CATALOGUE_KEY --host api.example.com --via header:X-Api-Key`,
    async run({ berth, args: [named, name = ""], options }) {
      const via = viaOf(options.via);
      const agentId = await agentIdOf(berth, named);
      const value = await readSecret(`${name}: `);
      const known = await find(berth, name);
      const more = { ...options.host.length > 0 && { hosts: options.host }, ...via && { via } };
      const { secret } = known ? await unwrap(
        berth.PUT("/v0/secrets/{id}", { params: { path: { id: known.id } }, body: { value, ...more } })
      ) : await unwrap(berth.POST("/v0/secrets", { body: { name, value, ...more } }));
      const isAttached = known?.agents.some((agent) => agent.agentId === agentId);
      if (!isAttached)
        await unwrap(
          berth.POST("/v0/agents/{agentId}/secrets", {
            params: { path: { agentId } },
            body: { secretIds: [secret.id] }
          })
        );
      return { data: secret, text: `${name} is set; it applies when the agent restarts` };
    }
  }),
  command({
    name: "agents secrets rm",
    summary: "take a secret from an agent; the workspace keeps it",
    usage: "<agent> <name>",
    async run({ berth, args: [named, name = ""] }) {
      const agentId = await agentIdOf(berth, named);
      const secret = await find(berth, name);
      if (!secret)
        throw new AdvisedError(
          `no secret is called ${name}`,
          `berth agents secrets ls ${agentId}`,
          EXIT.missing
        );
      const params = { path: { agentId, secretId: secret.id } };
      const data = await unwrap(berth.DELETE("/v0/agents/{agentId}/secrets/{secretId}", { params }));
      return { data, text: `${agentId} no longer gets ${name}` };
    }
  })
];
async function find(berth, name) {
  const { secrets } = await unwrap(berth.GET("/v0/secrets"));
  return secrets.find((secret) => secret.name === name);
}
function viaOf(text5) {
  if (text5 === void 0) return void 0;
  const [, as, name = ""] = /^(bearer|basic|(?:header|query)(?=:))(?::(.+))?$/.exec(text5) ?? [];
  if (as === "header" || as === "query") return { as, name };
  if ((as === "bearer" || as === "basic") && name === "") return { as };
  throw new UsageError("--via must be bearer, basic, header:NAME or query:NAME");
}

// src/commands/agent-tasks.ts
init_src();
init_errors2();
var agentTaskCommands = [
  command({
    name: "agents tasks ls",
    summary: "list the scheduled tasks of an agent",
    usage: "<agent>",
    async run({ berth, args }) {
      const params = {
        path: { agentId: await agentIdOf(berth, args[0]) },
        query: { includeDisabled: "true" }
      };
      const { jobs } = await unwrap(berth.GET("/v0/agents/{agentId}/tasks", { params }));
      const rows = jobs.map(({ id, name, enabled, schedule, state }) => ({
        id,
        name,
        schedule: scheduleText(schedule),
        on: enabled ? "yes" : "no",
        last: state?.lastRunAtMs ? `${state.lastStatus ?? ""} ${ago(state.lastRunAtMs)}`.trim() : null
      }));
      return { data: jobs, text: table(rows) };
    }
  }),
  command({
    name: "agents tasks add",
    summary: "have an agent do something once or on a schedule",
    usage: "<agent> <name> <message>",
    options: {
      cron: { about: 'at these times: "0 9 * * *"', value: "expression" },
      tz: { about: "the time zone of --cron: Europe/Berlin", value: "zone" },
      every: { about: "again and again: 30m, 12h, 7d", value: "time" },
      at: { about: "once: 2027-01-31T09:00Z", value: "time" }
    },
    async run({ berth, args: [named, name = "", message = ""], options }) {
      const agentId = await agentIdOf(berth, named);
      const body = {
        ...{ name, schedule: scheduleOf(options), sessionTarget: "isolated" },
        payload: { kind: "agentTurn", message }
      };
      const params = { path: { agentId } };
      const data = await unwrap(berth.POST("/v0/agents/{agentId}/tasks", { params, body }));
      return { data, text: `${data.id}  ${scheduleText(body.schedule)}` };
    }
  }),
  command({
    name: "agents tasks run",
    summary: "run a task now",
    usage: "<agent> <task>",
    run: (call) => onTask(call, async (path) => {
      const data = await unwrap(
        call.berth.POST("/v0/agents/{agentId}/tasks/{jobId}/run", { params: { path } })
      );
      return { data, text: data.runId ?? "started" };
    })
  }),
  command({
    name: "agents tasks runs",
    summary: "list the runs of a task",
    usage: "<agent> <task>",
    run: (call) => onTask(call, async (path) => {
      const { entries } = await unwrap(
        call.berth.GET("/v0/agents/{agentId}/tasks/{jobId}/runs", { params: { path } })
      );
      const rows = entries.map(({ ts, status, durationMs, summary, error }) => ({
        when: ago(ts),
        status,
        took: durationMs === void 0 ? null : span(durationMs),
        said: error ?? summary
      }));
      return { data: entries, text: table(rows) };
    })
  }),
  ...["on", "off"].map(
    (word) => command({
      name: `agents tasks ${word}`,
      summary: `switch a task ${word}`,
      usage: "<agent> <task>",
      run: (call) => onTask(call, async (path) => {
        const body = { enabled: word === "on" };
        const data = await unwrap(
          call.berth.POST("/v0/agents/{agentId}/tasks/{jobId}/toggle", { params: { path }, body })
        );
        return { data, text: `${data.name} is ${word}` };
      })
    })
  ),
  command({
    name: "agents tasks rm",
    summary: "delete a task",
    usage: "<agent> <task>",
    run: (call) => onTask(call, async (path) => {
      const data = await unwrap(
        call.berth.DELETE("/v0/agents/{agentId}/tasks/{jobId}", { params: { path } })
      );
      return { data, text: `deleted ${path.jobId}` };
    })
  })
];
async function onTask({ berth, args: [named, jobId = ""] }, act) {
  return act({ agentId: await agentIdOf(berth, named), jobId });
}
function scheduleOf({ cron, tz, every, at }) {
  if ([cron, every, at].filter(Boolean).length !== 1)
    throw new UsageError("it needs one of --cron, --every and --at");
  if (cron) return { kind: "cron", expr: cron, ...tz && { tz } };
  if (at) {
    if (Number.isNaN(Date.parse(at))) throw new UsageError(`${at} is not a time`);
    return { kind: "at", at: new Date(at).toISOString() };
  }
  const everyMs = readSpan(every ?? "");
  if (!everyMs) throw new UsageError(`${every} is not a time like 30m, 12h or 7d`);
  return { kind: "every", everyMs };
}
function scheduleText(schedule) {
  const { kind, expr, tz, everyMs, at } = schedule ?? { kind: "" };
  if (kind === "cron") return [expr, tz].filter(Boolean).join(" ");
  return everyMs ? `every ${span(everyMs)}` : at ? `at ${at}` : kind;
}

// src/commands/agents.ts
init_src();

// src/arguments.ts
init_errors2();
var LIMIT = {
  about: "at most so many; default 100",
  value: "count",
  short: "n"
};
var NO_WAIT = { about: "do not wait for the end" };
function count(text5, fallback) {
  if (text5 === void 0) return fallback;
  if (!/^[1-9]\d{0,5}$/.test(text5)) throw new UsageError(`${text5} must be a whole number, at least 1`);
  return Number(text5);
}
function pairs(texts) {
  if (texts.length === 0) return void 0;
  return Object.fromEntries(
    texts.map((text5) => {
      const at = text5.indexOf("=");
      if (at < 1) throw new UsageError(`${text5} must be like name=value`);
      return [text5.slice(0, at), text5.slice(at + 1)];
    })
  );
}

// src/browser.ts
async function openInBrowser(url) {
  const { spawn } = await import("node:child_process");
  const [program = "", ...args] = process.platform === "darwin" ? ["open"] : process.platform === "win32" ? ["rundll32", "url.dll,FileProtocolHandler"] : ["xdg-open"];
  spawn(program, [...args, url], { stdio: "ignore", detached: true }).on("error", () => {
  }).unref();
}

// src/commands/agents.ts
init_errors2();

// src/progress.ts
var FRAMES = [..."\u280B\u2819\u2839\u2838\u283C\u2834\u2826\u2827\u2807\u280F"];
var EVERY_MS = 80;
var BAR = 24;
var Progress = class {
  #text;
  #share;
  #frame = 0;
  #timer;
  constructor(text5) {
    this.#text = text5;
    if (!isTerminal(process.stderr) || process.env.TERM === "dumb") return;
    process.stderr.write("\x1B[?25l");
    this.#draw();
    this.#timer = setInterval(() => this.#draw(), EVERY_MS);
    this.#timer.unref();
  }
  /** @param share of the work that is done, from 0 to 1. */
  show(text5, share) {
    this.#text = harmless(text5);
    this.#share = share;
  }
  /** For `onProgress` of `waitForOperation`. */
  operation = ({ kind, state, step, progress }) => {
    const { bytes: done, total_bytes: total } = progress ?? {};
    const what = `${kind} ${step ?? state}`;
    if (done && total) this.show(`${what}  ${bytes(done)} of ${bytes(total)}`, done / total);
    else this.show(done ? `${what}  ${bytes(done)}` : what);
  };
  /** For `onProgress` of `upload`. */
  sent(name) {
    return (sent, total) => this.show(`${name}  ${bytes(sent)} of ${bytes(total)}`, total === 0 ? 1 : sent / total);
  }
  /** Removes the line. */
  [Symbol.dispose]() {
    if (!this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = void 0;
    process.stderr.write("\r\x1B[K\x1B[?25h");
  }
  #draw() {
    const frame = FRAMES[this.#frame++ % FRAMES.length] ?? "";
    const bar = this.#share === void 0 ? "" : `${barOf(this.#share)} `;
    const room = columns(process.stderr) - 3 - (bar ? BAR + 6 : 0);
    const text5 = Array.from(this.#text).slice(0, Math.max(room, 0)).join("");
    process.stderr.write(`\r\x1B[K${paint("cyan", frame, process.stderr)} ${bar}${text5}`);
  }
};
function barOf(share) {
  const full = Math.round(Math.min(Math.max(share, 0), 1) * BAR);
  const percent = `${Math.floor(share * 100)}`.padStart(3);
  return `${"\u2588".repeat(full)}${paint("dim", "\u2591".repeat(BAR - full), process.stderr)} ${percent}%`;
}

// src/commands/agents.ts
var PROTOCOLS = ["a2a", "mcp"];
var agentCommands = [
  command({
    name: "agents ls",
    summary: "list agents",
    options: { limit: LIMIT },
    async run({ berth, options }) {
      const agents = await listAgents(berth, count(options.limit, 100));
      const rows = agents.map(({ agentId, name, status, statusReason, agentVersion, lastSync }) => ({
        id: agentId,
        name,
        status: statusText(status),
        version: agentVersion,
        saved: ago(lastSync),
        reason: statusReason
      }));
      return {
        data: agents.map(withoutToken),
        text: table(rows, "none; berth agents create <name> creates one")
      };
    }
  }),
  command({
    name: "agents show",
    summary: "show an agent",
    usage: "<agent>",
    async run({ berth, args }) {
      const agentId = await agentIdOf(berth, args[0]);
      const data = await unwrap(berth.GET("/v0/agents/{agentId}", { params: { path: { agentId } } }));
      const { agent, disk, secrets, skills } = data;
      const fields = {
        id: agent.agentId,
        name: agent.name,
        description: agent.description ?? void 0,
        status: statusText(agent.status),
        reason: agent.statusReason ?? void 0,
        version: `${agent.engine} ${agent.agentVersion}`,
        created: ago(agent.createdAt),
        saved: ago(agent.lastSync),
        protocols: agent.protocols.length > 0 ? agent.protocols : void 0,
        disk: disk ? `${bytes(disk.usedBytes)} of ${bytes(disk.limitBytes)}` : void 0,
        secrets: secrets.map(({ name }) => name),
        skills: skills.map(({ name }) => name)
      };
      return { data: { ...data, agent: withoutToken(agent) }, text: details(fields) };
    }
  }),
  command({
    name: "agents create",
    summary: "create an agent, and wait until it runs",
    usage: "<name>",
    options: {
      description: { about: "what it is for", value: "text" },
      template: { about: "start from this template", value: "id" },
      protocol: {
        about: "let other agents talk to it in this protocol; may be repeated",
        value: "protocol",
        many: true,
        choices: PROTOCOLS
      },
      "no-wait": NO_WAIT
    },
    async run({ berth, args: [name = ""], options, signal }) {
      const { description, template } = options;
      const protocols = options.protocol;
      const body = {
        name,
        ...description && { description },
        ...template && { templateId: template },
        ...protocols.length > 0 && { protocols }
      };
      const started = await berth.POST("/v0/agents", { params: { header: startNow() }, body });
      const { agent } = await unwrap(started);
      if (!options["no-wait"]) {
        var _stack = [];
        try {
          const progress = __using(_stack, new Progress(`starting ${agent.agentId}`));
          await waitForOperation(berth, started, { onProgress: progress.operation, signal });
        } catch (_) {
          var _error = _, _hasError = true;
        } finally {
          __callDispose(_stack, _error, _hasError);
        }
      }
      const now = await readAgent(berth, agent.agentId);
      return { data: withoutToken(now), text: stateOf(now) };
    }
  }),
  command({
    name: "agents fork",
    summary: "copy an agent with its workspace and settings, and wait until the copies run",
    usage: "<agent>",
    options: {
      name: { about: "name of the fork; by default the agent\u2019s name and \u201Cfork\u201D", value: "name" },
      count: { about: "how many forks, at most 10; default 1", value: "count" },
      snapshot: { about: "begin with this snapshot instead of the workspace now", value: "cid" },
      "no-wait": NO_WAIT
    },
    async run({ berth, args, options, signal }) {
      const path = { agentId: await agentIdOf(berth, args[0]) };
      const { name, snapshot: snapshotCid } = options;
      const body = {
        count: count(options.count, 1),
        ...name && { name },
        ...snapshotCid && { snapshotCid }
      };
      const params = { path, header: startNow() };
      const { forks } = await unwrap(berth.POST("/v0/agents/{agentId}/fork", { params, body }));
      const made = forks.filter((fork) => "agent" in fork);
      for (const { agent, operation } of options["no-wait"] ? [] : made) {
        var _stack = [];
        try {
          const progress = __using(_stack, new Progress(`starting ${agent.agentId}`));
          await waitForOperation(berth, operation.id, { onProgress: progress.operation, signal });
        } catch (_) {
          var _error = _, _hasError = true;
        } finally {
          __callDispose(_stack, _error, _hasError);
        }
      }
      const refused = forks.find((fork) => !("agent" in fork));
      if (refused)
        throw new AdvisedError(
          `${made.length} of ${forks.length} forks: ${refused.error}`,
          "berth agents ls lists them",
          EXIT.forbidden
        );
      const agents = await Promise.all(made.map(({ agent }) => readAgent(berth, agent.agentId)));
      return { data: agents.map(withoutToken), text: agents.map(stateOf).join("\n") };
    }
  }),
  command({
    name: "agents restart",
    summary: "restart an agent, and wait until it runs",
    usage: "<agent>",
    options: { version: { about: "on this version of its engine", value: "version" }, "no-wait": NO_WAIT },
    async run({ berth, args, options, signal }) {
      var _stack = [];
      try {
        const agentId = await agentIdOf(berth, args[0]);
        const body = options.version ? { version: options.version } : {};
        const params = { path: { agentId }, header: startNow() };
        const started = await berth.POST("/v0/agents/{agentId}/restart", { params, body });
        const data = await unwrap(started);
        if (options["no-wait"]) return { data, text: `${agentId} restarts` };
        const progress = __using(_stack, new Progress(`restarting ${agentId}`));
        const operation = await waitForOperation(berth, started, { onProgress: progress.operation, signal });
        return { data: operation, text: `${agentId} restarted` };
      } catch (_) {
        var _error = _, _hasError = true;
      } finally {
        __callDispose(_stack, _error, _hasError);
      }
    }
  }),
  command({
    name: "agents rm",
    summary: "delete an agent with its container and files; its snapshots stay",
    usage: "<agent>",
    async run({ berth, args }) {
      const agentId = await agentIdOf(berth, args[0]);
      const params = { path: { agentId }, header: startNow() };
      const data = await unwrap(berth.DELETE("/v0/agents/{agentId}", { params }));
      return { data, text: `deleted ${agentId}` };
    }
  }),
  command({
    name: "agents open",
    summary: "open an agent in the dashboard",
    usage: "<agent>",
    options: { print: { about: "only print the URL" } },
    async run({ berth, target: target2, args, options, json }) {
      const url = `${target2.url}/dashboard/agents/${await agentIdOf(berth, args[0])}`;
      if (!options.print && !json && isTerminal()) await openInBrowser(url);
      return { data: { url }, text: url };
    }
  })
];
var withoutToken = ({ gatewayToken: _, ...agent }) => agent;
var readAgent = async (berth, agentId) => (await unwrap(berth.GET("/v0/agents/{agentId}", { params: { path: { agentId } } }))).agent;
var stateOf = (agent) => `${agent.agentId} ${statusText(agent.status)}${reason(agent)}`;
var reason = ({ statusReason }) => statusReason ? `: ${statusReason}` : "";
var STYLES = { running: "green", starting: "yellow", not_running: "red" };
var statusText = (status) => paint(STYLES[status] ?? "reset", status);

// src/commands/api.ts
init_errors();
import { text as text2 } from "node:stream/consumers";
init_errors2();
var METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];
var apiCommands = [
  command({
    name: "api",
    summary: "call any route of the API, as `/docs` of your Berth lists them",
    usage: "<method> <path>",
    options: {
      data: { about: "the JSON body, or - for stdin", value: "json", short: "d" },
      header: { about: "Prefer: wait=30", value: "line", short: "H", many: true }
    },
    more: `  berth api GET '/v3/files/public?limit=1'
  berth api POST /v0/agents/x7f3k2ab/model/pause`,
    async run({ target: target2, args: [given = "", path = ""], options, signal }) {
      const method = METHODS.find((one) => one === given.toUpperCase());
      if (!method) throw new UsageError(`${given} is none of ${METHODS.join(", ")}`);
      if (!path.startsWith("/")) throw new UsageError("the path begins with /");
      const body = options.data === "-" ? await text2(process.stdin) : options.data;
      const response = await fetch(target2.url + path, {
        ...{ method, signal },
        headers: {
          authorization: `Bearer ${target2.key}`,
          ...body !== void 0 && { "content-type": "application/json" },
          ...Object.fromEntries(options.header.map(readHeader))
        },
        ...body !== void 0 && { body }
      });
      const said = await response.text();
      const data = parsed(said);
      if (!response.ok) throw errorOf(response, data);
      return { data, text: typeof data === "string" ? data : JSON.stringify(data, null, 2) };
    }
  })
];
function readHeader(line) {
  const at = line.indexOf(":");
  if (at < 1) throw new UsageError(`${line} must be like Prefer: wait=30`);
  return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}
function parsed(body) {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}

// src/commands/chat.ts
init_src();
import { randomUUID } from "node:crypto";
import { text as text3 } from "node:stream/consumers";
init_errors2();

// src/markdown.ts
var MarkdownWriter = class {
  #out;
  #isPlain;
  #line = "";
  /** The terminal's lines that the unfinished line takes. */
  #drawn = 0;
  #isCode = false;
  constructor(out = process.stdout) {
    this.#out = out;
    this.#isPlain = !out.isTTY || process.env.TERM === "dumb";
  }
  write(text5) {
    const safe = this.#isPlain ? text5 : harmlessLines(text5);
    if (this.#isPlain) {
      this.#out.write(safe);
      return;
    }
    const [first = "", ...rest] = safe.split("\n");
    this.#line += first;
    for (const line of rest) {
      this.#finishLine();
      this.#line = line;
    }
    this.#draw();
  }
  /** Ends the text, with a line break if it has none. */
  end() {
    if (this.#isPlain) return;
    if (this.#line !== "") this.#finishLine();
    this.#isCode = false;
  }
  #finishLine() {
    const isFence = /^\s*(```|~~~)/.test(this.#line);
    this.#draw();
    this.#out.write("\n");
    if (isFence) this.#isCode = !this.#isCode;
    this.#line = "";
    this.#drawn = 0;
  }
  #draw() {
    const room = columns(this.#out);
    const lines = renderLine(this.#line, { isCode: this.#isCode, room });
    const up = this.#drawn > 1 ? `\x1B[${this.#drawn - 1}A` : "";
    this.#out.write(`${this.#drawn > 0 ? `\r${up}\x1B[J` : ""}${lines.join("\n")}`);
    this.#drawn = lines.length;
  }
};
function renderLine(line, { isCode, room }) {
  const rest = line.trimStart();
  const indent = line.slice(0, line.length - rest.length);
  if (/^(```|~~~)/.test(rest)) return [paint("dim", rest.slice(0, room - 1))];
  if (isCode) return hardWrap(line, room - 1).map((part) => paint("cyan", part));
  const [heading] = /^#{1,6}\s/.exec(rest) ?? [];
  if (heading)
    return wrap(inline(rest.slice(heading.length)), room - 1).map(
      (part) => paint(["bold", "underline"], part)
    );
  if (/^([-*_])(\s*\1){2,}$/.test(rest)) return [paint("dim", "\u2500".repeat(Math.min(room - 1, 40)))];
  if (rest.startsWith(">"))
    return wrap(inline(rest.slice(1).trimStart()), room - 3).map((part) => `${paint("dim", "\u2502")} ${part}`);
  const [bullet] = /^([-*+]|\d{1,9}[.)])\s/.exec(rest) ?? [];
  if (!bullet) return wrap(inline(rest), room - 1 - indent.length).map((part) => indent + part);
  const item = rest.slice(bullet.length).trimStart();
  const [box] = /^\[[ xX]\]\s/.exec(item) ?? [];
  const mark = box ? /x/i.test(box) ? "\u2611" : "\u2610" : /\d/.test(bullet) ? bullet.trim() : "\u2022";
  const hanging = " ".repeat(indent.length + widthOf(mark) + 1);
  return wrap(inline(item.slice(box?.length ?? 0)), room - 1 - hanging.length).map(
    (part, index) => index === 0 ? `${indent}${paint("cyan", mark)} ${part}` : hanging + part
  );
}
function inline(text5) {
  return text5.split(/(`[^`]+`)/).map(
    (part) => part.length > 2 && part.startsWith("`") && part.endsWith("`") ? paint("cyan", part.slice(1, -1).trim()) : emphasis(part)
  ).join("");
}
var emphasis = (text5) => text5.replace(
  /!?\[([^[\]]+)\]\(([^()\s]+)\)/g,
  (_, label, url) => label === url ? paint("underline", url) : `${paint("underline", label)} ${paint("dim", `(${url})`)}`
).replace(/\*\*([^*]+)\*\*|__([^_]+)__/g, (_, star, under) => paint("bold", star ?? under)).replace(/(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])/g, (_, inner) => paint("italic", inner)).replace(/~~([^~]+)~~/g, (_, inner) => paint("strikethrough", inner));
function wrap(text5, room) {
  const lines = [];
  let line = "";
  for (const word of text5.split(/(?<= )/)) {
    if (line !== "" && widthOf(line) + widthOf(word.trimEnd()) > room) {
      lines.push(line.trimEnd());
      line = "";
    }
    line += word;
    while (widthOf(line) > room && !line.includes("\x1B")) {
      const [head = "", ...tail] = hardWrap(line, room);
      lines.push(head);
      line = tail.join("");
    }
  }
  return carryStyles([...lines, line]);
}
function hardWrap(text5, room) {
  const lines = [];
  let line = "";
  for (const character of text5) {
    if (widthOf(line) + widthOf(character) > room) {
      lines.push(line);
      line = "";
    }
    line += character;
  }
  return [...lines, line];
}
function carryStyles(lines) {
  let open2 = [];
  return lines.map((line) => {
    const before = open2.join("");
    for (const [code, number] of line.matchAll(/\x1b\[(\d+)m/g)) {
      const isEnd = ["0", "22", "23", "24", "29", "39"].includes(number ?? "");
      open2 = isEnd ? open2.slice(0, -1) : [...open2, code];
    }
    return before + line + (open2.length > 0 ? "\x1B[0m" : "");
  });
}

// src/commands/chat.ts
var OPTIONS = {
  conversation: { about: "continue this conversation", value: "id" },
  continue: { about: "continue the newest conversation", short: "c" }
};
var chatCommands = [
  command({
    name: "agents chat",
    summary: "talk to an agent: one message, or a conversation in the terminal",
    usage: "<agent> [message...]",
    options: OPTIONS,
    more: `Without a message, it asks for messages until Ctrl-D; Ctrl-C stops a reply. If stdin is not
a terminal, it is the message. In a terminal the reply is rendered; elsewhere it is Markdown.

  berth agents chat Researcher
  berth agents chat Researcher 'What changed in the workspace?'
  git diff | berth agents chat Researcher --json | jq -r .reply`,
    async run(call) {
      const { berth, args, json } = call;
      const agentId = await agentIdOf(berth, args[0]);
      const conversationId = await conversationOf(berth, agentId, call.options);
      const isTyped = args.length === 1 && process.stdin.isTTY === true;
      if (isTyped && json) throw new UsageError("--json needs a message");
      if (isTyped) return converse(berth, agentId, conversationId);
      const message = args.length > 1 ? args.slice(1).join(" ") : await text3(process.stdin);
      if (message.trim() === "") throw new UsageError("the message is empty");
      const { reply, state, calls } = await say(
        { berth, agentId, conversationId, isQuiet: json },
        message,
        call
      );
      return json ? { data: { conversationId, reply, state, toolCalls: calls }, text: "" } : void 0;
    }
  })
];
async function conversationOf(berth, agentId, options) {
  if (options.conversation) return options.conversation;
  if (!options.continue) return randomUUID();
  const path = { agentId };
  const { conversations } = await unwrap(
    berth.GET("/v0/agents/{agentId}/conversations", { params: { path } })
  );
  const [newest] = conversations;
  if (!newest) throw new AdvisedError("there is no conversation yet", "leave --continue out", EXIT.missing);
  return newest.conversationId;
}
async function say(place, message, { signal }) {
  var _stack = [];
  try {
    const { berth, agentId, conversationId, isQuiet } = place;
    const waiting = new Waiting(isQuiet);
    const _ = __using(_stack, waiting);
    const body = await unwrap(
      berth.POST("/v0/agents/{agentId}/conversations/{conversationId}/messages", {
        params: { path: { agentId, conversationId } },
        body: { text: message },
        parseAs: "stream",
        signal
      })
    );
    const printer = isQuiet ? void 0 : new ReplyPrinter();
    const texts = /* @__PURE__ */ new Map();
    const calls = [];
    for await (const { name, data } of serverEvents(streamOf(body))) {
      const event = JSON.parse(data);
      waiting.stop();
      if (name === "text") {
        const before = event.replace ? "" : texts.get(event.item) ?? "";
        texts.set(event.item, before + event.text);
        printer?.text(event.item, texts.get(event.item) ?? "");
      }
      if (name === "message") {
        for (const { name: name2, arguments: given } of event.toolCalls ?? []) {
          calls.push(name2);
          printer?.tool(name2, given);
          waiting.start(name2);
        }
      }
      if (name === "error" || name === "end" && event.state === "failed") {
        printer?.end();
        throw new RequestError(name === "error" ? 503 : 500, event.error || "the reply failed");
      }
      if (name === "end") {
        printer?.end();
        return { reply: Array.from(texts.values()).join("\n\n"), state: event.state, calls };
      }
    }
    printer?.end();
    throw new AdvisedError(
      "the connection ended before the reply",
      `continue with --conversation ${conversationId}`
    );
  } catch (_2) {
    var _error = _2, _hasError = true;
  } finally {
    __callDispose(_stack, _error, _hasError);
  }
}
var Waiting = class {
  #isQuiet;
  #progress;
  constructor(isQuiet) {
    this.#isQuiet = isQuiet;
    this.start("thinking");
  }
  start(what) {
    this.stop();
    if (!this.#isQuiet) this.#progress = new Progress(what);
  }
  stop() {
    this.#progress?.[Symbol.dispose]();
    this.#progress = void 0;
  }
  [Symbol.dispose]() {
    this.stop();
  }
};
var ReplyPrinter = class {
  #writer;
  #item;
  #printed = "";
  text(item, whole) {
    if (item !== this.#item) {
      this.end();
      this.#item = item;
      this.#writer = new MarkdownWriter();
    }
    if (!whole.startsWith(this.#printed)) {
      this.#finish();
      this.#writer = new MarkdownWriter();
    }
    this.#writer?.write(whole.slice(this.#printed.length));
    this.#printed = whole;
  }
  tool(name, given) {
    this.end();
    if (!isTerminal()) return;
    const room = Math.max(20, (process.stdout.columns || 80) - name.length - 6);
    console.log(paint("dim", `  \u2699 ${harmless(name)} ${harmless(given).slice(0, room)}`));
  }
  end() {
    this.#finish();
    this.#item = void 0;
  }
  #finish() {
    this.#writer?.end();
    if (this.#printed !== "" && !isTerminal() && !this.#printed.endsWith("\n")) process.stdout.write("\n");
    this.#writer = void 0;
    this.#printed = "";
  }
};
async function converse(berth, agentId, conversationId) {
  const params = { path: { agentId, conversationId } };
  const place = { berth, agentId, conversationId, isQuiet: false };
  const { createInterface } = await import("node:readline/promises");
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  let isReplying = false;
  process.removeAllListeners("SIGINT");
  terminal.on("SIGINT", () => {
    if (!isReplying) return terminal.close();
    berth.POST("/v0/agents/{agentId}/conversations/{conversationId}/stop", { params }).catch(() => {
    });
  });
  const left = new AbortController();
  const closed = new Promise((resolve2) => {
    terminal.once("close", () => {
      left.abort();
      resolve2(void 0);
    });
  });
  while (!left.signal.aborted) {
    const message = await Promise.race([terminal.question(paint("bold", "\u203A ")), closed]);
    if (message === void 0) break;
    if (message.trim() === "") continue;
    isReplying = true;
    console.log();
    try {
      const { state } = await say(place, message, left);
      if (state === "stopped") console.log(paint("dim", "(stopped)"));
    } catch (error) {
      if (left.signal.aborted) break;
      if (!(error instanceof RequestError)) throw error;
      console.error(`${paint("red", "error:", process.stderr)} ${harmless(error.message)}`);
    }
    console.log();
    isReplying = false;
  }
  console.log(paint("dim", `
berth agents chat ${agentId} --conversation ${conversationId}`));
}

// src/commands/completion.ts
init_errors2();

// src/shells.ts
var SHELLS = ["bash", "zsh", "fish"];
var SCRIPTS = {
  bash: `_berth() {
  local line words=()
  COMPREPLY=()
  while IFS=$'\\t' read -r line _; do words+=("$line"); done < <(berth __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=("\${words[@]}")
}
complete -o default -F _berth berth
`,
  zsh: `#compdef berth
_berth() {
  local -a found
  local word about
  while IFS=$'\\t' read -r word about; do
    found+=("\${word//:/\\\\:}\${about:+:$about}")
  done < <(berth __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#found} )); then _describe berth found; else _files; fi
}
if [ "\${funcstack[1]}" = "_berth" ]; then _berth "$@"; else compdef _berth berth; fi
`,
  fish: `function __berth_complete
  set -l words (commandline -opc) (commandline -ct)
  berth __complete -- $words[2..-1] 2>/dev/null
end
complete -c berth -f -n 'test (count (__berth_complete)) -gt 0' -a '(__berth_complete)'
`
};

// src/commands/completion.ts
var completionCommands = [
  command({
    name: "completion",
    summary: "print a script that completes commands in bash, zsh or fish",
    usage: "<shell>",
    more: `  bash:  berth completion bash > ~/.local/share/bash-completion/completions/berth
  zsh:   berth completion zsh > "\${fpath[1]}/_berth"
  fish:  berth completion fish > ~/.config/fish/completions/berth.fish`,
    async run({ args: [name] }) {
      const shell = SHELLS.find((one) => one === name);
      if (!shell) throw new UsageError(`${name} is none of ${SHELLS.join(", ")}`);
      return { data: SCRIPTS[shell], text: SCRIPTS[shell].trimEnd() };
    }
  })
];

// src/commands/console.ts
init_src();
init_errors2();
var consoleCommands = [
  command({
    name: "agents exec",
    summary: "run a command in an agent; the exit code is the command\u2019s",
    usage: "<agent> <command...>",
    options: { cwd: { about: "the folder to run it in", value: "path" } },
    isOpenEnded: true,
    more: `A single word is a line for the agent's shell; several words are passed on unchanged.

  berth agents exec Researcher 'ls workspace | wc -l'
  berth agents exec Researcher python3 -c 'print(1 + 1)'`,
    async run({ berth, args: [named, ...words], options: { cwd }, json, signal }) {
      const agentId = await agentIdOf(berth, named);
      const line = words.length === 1 ? words[0] ?? "" : words.map(quote).join(" ");
      const body = await unwrap(
        berth.POST("/v0/agents/{agentId}/console/exec", {
          params: { path: { agentId } },
          body: { command: line, ...cwd && { cwd } },
          headers: { accept: "text/event-stream" },
          parseAs: "stream",
          signal
        })
      );
      const said = { stdout: "", stderr: "" };
      for await (const { name, data } of serverEvents(streamOf(body))) {
        const event = JSON.parse(data);
        if (name === "error") throw new RequestError(500, event.error);
        if (name === "exit") {
          process.exitCode = event.exitCode;
          if (event.truncated) console.error("the output was longer than Berth passes on");
          if (event.timedOut) console.error(`the command was killed: it ran too long`);
          return json ? { data: { ...said, ...event }, text: "" } : void 0;
        }
        if (name !== "stdout" && name !== "stderr") continue;
        if (json) said[name] += event.text;
        else process[name].write(event.text);
      }
      throw new AdvisedError("the connection ended before the command did", "its outcome is unknown");
    }
  }),
  command({
    name: "agents shell",
    summary: "open a terminal in an agent; the exit code is the shell\u2019s",
    usage: "<agent>",
    more: `All keys go to the agent: Ctrl-C interrupts its programs, and Ctrl-D or exit ends the shell. If the
connection is lost, berth connects again; the shell waits for 10 minutes.`,
    async run({ berth, target: target2, args: [named = ""] }) {
      if (!isTerminal(process.stdin) || !isTerminal())
        throw new AdvisedError(
          "this is not a terminal",
          `run a command instead: berth agents exec ${named} '\u2026'`,
          EXIT.usage
        );
      if (typeof WebSocket === "undefined")
        throw new AdvisedError(`Node ${process.versions.node} has no WebSocket`, "install Node 22 or newer");
      const agentId = await agentIdOf(berth, named);
      await unwrap(
        berth.GET("/v0/agents/{agentId}/console/terminal", { params: { path: { agentId } } })
      ).catch((error) => {
        if (!(error instanceof RequestError && error.status === 426)) throw error;
      });
      const { joinTerminal: joinTerminal2 } = await Promise.resolve().then(() => (init_remote_terminal(), remote_terminal_exports));
      const end = await joinTerminal2({
        url: `${target2.url.replace(/^http/, "ws")}/v0/agents/${agentId}/console/terminal`,
        headers: { authorization: `Bearer ${target2.key}` }
      });
      if ("problem" in end) throw new AdvisedError(end.problem, adviceOf(end.code, agentId), exitOf(end.code));
      if (end.reason) console.error(`the terminal was closed: ${end.reason}`);
      process.exitCode = end.code;
      return void 0;
    }
  }),
  command({
    name: "agents logs",
    summary: "print the end of an agent\u2019s log, or follow it",
    usage: "<agent>",
    options: {
      follow: { about: "print new lines as they arrive", short: "f" },
      lines: { about: "how many lines; default 100", value: "count", short: "n" }
    },
    async run({ berth, args, options, json, signal }) {
      const agentId = await agentIdOf(berth, args[0]);
      const path = { agentId };
      const lines = count(options.lines, 100);
      if (!options.follow) {
        const data = await unwrap(berth.GET("/v0/agents/{agentId}/logs", { params: { path } }));
        const all = harmlessLines(data.logs).trimEnd().split("\n");
        return { data, text: all.slice(-lines).join("\n") };
      }
      const params = { path, query: { lines } };
      const body = await unwrap(
        berth.GET("/v0/agents/{agentId}/logs/stream", { params, parseAs: "stream", signal })
      );
      for await (const { name, data } of serverEvents(streamOf(body)))
        if (name === "line") console.log(json ? data : lineText(JSON.parse(data)));
      throw new AdvisedError("the log ended: the agent stopped", `berth agents show ${agentId}`);
    }
  })
];
function adviceOf(code, agentId) {
  if (code === "restart_needed") return `berth agents restart ${agentId}`;
  if (code === "busy") return "leave another terminal of the agent first";
  if (code === "refused") return "get a key that works there: berth login";
  if (code === "taken") return `berth agents shell ${agentId} opens a new one`;
  return `berth agents show ${agentId}`;
}
var exitOf = (code) => code === "refused" ? EXIT.signIn : ["busy", "agent_not_ready", "lost"].includes(code) ? EXIT.unavailable : EXIT.failed;
var LEVELS = {
  error: "red",
  fatal: "red",
  warn: "yellow",
  debug: "dim"
};
function lineText({ timestamp, level, source, message }) {
  const text5 = harmless(message);
  const style = LEVELS[level];
  return `${paint("dim", timestamp)} ${paint("dim", source)} ${style ? paint(style, text5) : text5}`;
}
var quote = (word) => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

// src/events.ts
init_src();
var PAUSE_MS = 2e3;
async function* followEvents(berth, { types, signal, onConnection }) {
  for (let lastId; !signal.aborted; ) {
    try {
      const query = types.length > 0 ? { type: types } : {};
      const body = await unwrap(
        berth.GET("/v0/events", {
          params: { query },
          querySerializer: { array: { style: "form", explode: false } },
          headers: lastId === void 0 ? {} : { "last-event-id": lastId },
          parseAs: "stream",
          signal
        })
      );
      onConnection(true);
      for await (const { id, data } of serverEvents(streamOf(body))) {
        const isKnown = id !== void 0 && lastId !== void 0 && BigInt(id) <= BigInt(lastId);
        lastId = id ?? lastId;
        if (data !== "" && !isKnown) yield { event: JSON.parse(data), body: data };
      }
    } catch (error) {
      if (error instanceof RequestError || signal.aborted) throw error;
    }
    onConnection(false);
    await new Promise((resolve2) => setTimeout(resolve2, PAUSE_MS));
  }
}

// src/commands/events.ts
var eventCommands = [
  command({
    name: "events",
    summary: "print what changes in the workspace, as it happens",
    options: { type: { about: "only this type, or a group of types: file.*", value: "type", many: true } },
    async run({ berth, options, json, signal }) {
      const onConnection = (isOpen) => {
        if (!isOpen) console.error(paint("dim", "the connection was lost; trying again", process.stderr));
      };
      for await (const { event, body } of followEvents(berth, { types: options.type, signal, onConnection }))
        console.log(json ? body : eventText(event));
    }
  })
];
function eventText({ type, createdAt, resource, data }) {
  const name = [data.name, data.step, data.statusReason, data.error].filter(Boolean).join(" \xB7 ");
  const time = process.stdout.isTTY ? new Date(createdAt).toLocaleTimeString() : new Date(createdAt).toISOString();
  return `${paint("dim", time)} ${paint("bold", type)} ${harmless(`${resource.id} ${name}`)}`.trimEnd();
}

// src/commands/files.ts
init_src();
init_errors2();

// src/gateway.ts
init_src();
init_errors2();
import { text as text4 } from "node:stream/consumers";
async function gatewayOf(berth, api) {
  const { data } = await unwrap(berth.GET("/v3/gateways"));
  const [gateway] = data.rows;
  if (!gateway)
    throw new AdvisedError("the workspace has no gateway", "create one in the dashboard, under Files");
  const { protocol, port } = new URL(api);
  return `${protocol}//${gateway.host}${port && `:${port}`}`;
}
var encodePath = (path) => path.split("/").map(encodeURIComponent).join("/");
async function linkTo(berth, api, { id, cid, network }, { path = "", seconds } = {}) {
  if (network === "private" && !path && seconds === void 0)
    return (await unwrap(berth.GET("/v0/files/private/{id}/link", { params: { path: { id } } }))).data;
  const folder = network === "public" ? "ipfs" : "files";
  const url = `${await gatewayOf(berth, api)}/${folder}/${cid}${path && `/${encodePath(path)}`}`;
  if (network === "public") return url;
  const body = { url, method: "GET", expires: seconds ?? 900, date: Math.floor(Date.now() / 1e3) };
  return (await unwrap(berth.POST("/v3/files/private/download_link", { body }))).data;
}
async function open(url, signal) {
  const [{ request }, { lookup }] = await Promise.all([
    url.startsWith("https:") ? import("node:https") : import("node:http"),
    import("node:dns")
  ]);
  const response = await new Promise((resolve2, reject) => {
    const find2 = ((name, options, done) => lookup(name.endsWith(".localhost") ? "localhost" : name, options, done));
    request(url, { signal, lookup: find2 }, resolve2).on("error", (error) => reject(new TypeError("fetch failed", { cause: error }))).end();
  });
  const { statusCode = 0, headers } = response;
  if (statusCode === 200) return response;
  const said = await text4(response);
  const message = readMessage(said) ?? `${statusCode}`;
  const code = headers["error-code"];
  throw new RequestError(
    statusCode,
    message,
    new Headers(typeof code === "string" ? { "error-code": code } : {})
  );
}
function readMessage(body) {
  try {
    return JSON.parse(body).error;
  } catch {
    return void 0;
  }
}

// src/commands/files.ts
var fileCommands = [
  command({
    name: "files ls",
    summary: "list files, newest first",
    options: {
      network: { about: "default public", value: "network", choices: NETWORKS },
      name: { about: "only names with this part", value: "text" },
      group: { about: "only files of this group", value: "id" },
      limit: LIMIT
    },
    async run({ berth, options }) {
      const path = { network: options.network ?? "public" };
      const { name, group } = options;
      const files = await collect(
        allItems(
          (page) => berth.GET("/v3/files/{network}", {
            params: { path, query: { ...page, ...name && { name }, ...group && { group } } }
          })
        ),
        count(options.limit, 100)
      );
      const rows = files.map(({ name: name2, size: size2, number_of_files, cid, created_at }) => ({
        name: name2,
        size: bytes(size2),
        files: number_of_files > 1 ? number_of_files : null,
        added: ago(created_at),
        cid
      }));
      return { data: files, text: table(rows, "none; berth files add <path> adds one") };
    }
  }),
  command({
    name: "files show",
    summary: "show a file",
    usage: "<id-or-cid>",
    async run({ berth, args }) {
      const file = await findFile(berth, args[0]);
      const { id, name, cid, network, size: size2, number_of_files, mime_type, group_id, created_at, keyvalues } = file;
      const pairs2 = Object.entries(keyvalues).map(([key, value]) => `${key}=${value}`);
      const fields = {
        ...{ name, cid, id, network, size: bytes(size2), files: number_of_files, type: mime_type },
        group: group_id ?? void 0,
        added: ago(created_at),
        keyvalues: pairs2.length > 0 ? pairs2 : void 0
      };
      return { data: file, text: details(fields) };
    }
  }),
  command({
    name: "files link",
    summary: "print a link that shows a file to anyone; a private file\u2019s link expires",
    usage: "<id-or-cid>",
    options: { expires: { about: "for a private file; default 15m", value: "time" } },
    async run({ berth, target: target2, args, options }) {
      const file = await findFile(berth, args[0]);
      const ms = options.expires === void 0 ? void 0 : readSpan(options.expires);
      if (options.expires !== void 0 && !ms)
        throw new UsageError(`${options.expires} is not a time like 15m or 7d`);
      const url = await linkTo(berth, target2.url, file, { seconds: ms && ms / 1e3 });
      return { data: { url, network: file.network, cid: file.cid }, text: url };
    }
  }),
  command({
    name: "files rm",
    summary: "delete files; content that other files have stays",
    usage: "<id-or-cid...>",
    async run({ berth, args }) {
      const deleted = [];
      for (const named of args) {
        const { id, cid, network } = await findFile(berth, named);
        const params = { path: { network, id }, header: startNow() };
        await unwrap(berth.DELETE("/v3/files/{network}/{id}", { params }));
        deleted.push({ id, cid, network });
      }
      return { data: deleted, text: deleted.map(({ cid }) => `deleted ${cid}`).join("\n") };
    }
  })
];

// src/commands/groups.ts
init_src();
var NETWORK = { about: "default public", value: "network", choices: NETWORKS };
var networkOf = ({ network }) => network ?? "public";
var groupCommands = [
  command({
    name: "groups ls",
    summary: "list groups",
    options: { network: NETWORK, limit: LIMIT },
    async run({ berth, options }) {
      const path = { network: networkOf(options) };
      const groups = await collect(
        allItems((page) => berth.GET("/v3/groups/{network}", { params: { path, query: page } })),
        count(options.limit, 100)
      );
      const rows = groups.map(({ id, name, created_at }) => ({ id, name, created: ago(created_at) }));
      return { data: groups, text: table(rows) };
    }
  }),
  command({
    name: "groups create",
    summary: "create a group",
    usage: "<name>",
    options: { network: NETWORK },
    async run({ berth, args: [name = ""], options }) {
      const params = { path: { network: networkOf(options) } };
      const { data } = await unwrap(berth.POST("/v3/groups/{network}", { params, body: { name } }));
      return { data, text: data.id };
    }
  }),
  command({
    name: "groups add",
    summary: "put files into a group",
    usage: "<group> <id-or-cid...>",
    async run({ berth, args: [id = "", ...named] }) {
      const files = [];
      for (const one of named) {
        const { id: fileId, network, name } = await findFile(berth, one);
        const path = { network, id, fileId };
        await unwrap(berth.PUT("/v3/groups/{network}/{id}/ids/{fileId}", { params: { path } }));
        files.push({ id: fileId, name });
      }
      return { data: files, text: files.map(({ name, id: id2 }) => `added ${name ?? id2}`).join("\n") };
    }
  }),
  command({
    name: "groups rm",
    summary: "delete a group; its files stay",
    usage: "<group>",
    options: { network: NETWORK },
    async run({ berth, args: [id = ""], options }) {
      const path = { network: networkOf(options), id };
      await unwrap(berth.DELETE("/v3/groups/{network}/{id}", { params: { path } }));
      return { data: { id }, text: `deleted ${id}` };
    }
  })
];

// src/commands/operations.ts
init_src();
var STATES = ["queued", "running", "succeeded", "failed", "canceled"];
var operationCommands = [
  command({
    name: "operations ls",
    summary: "list operations, newest first",
    options: { state: { about: "only this state", value: "state", choices: STATES }, limit: LIMIT },
    async run({ berth, options }) {
      const state = options.state;
      const operations = await collect(
        allItems(
          (page) => berth.GET("/v0/operations", {
            params: { query: { order: "DESC", ...page, ...state && { state } } }
          })
        ),
        count(options.limit, 100)
      );
      const rows = operations.map(({ id, kind, target: target2, target_name, state: state2, step, error, created_at }) => ({
        ...{ id, kind, on: target_name ?? target2, state: stateText(state2), began: ago(created_at) },
        now: error ?? (state2 === "succeeded" ? null : step)
      }));
      return { data: operations, text: table(rows) };
    }
  }),
  command({
    name: "operations show",
    summary: "show an operation",
    usage: "<id>",
    async run({ berth, args: [id = ""] }) {
      const { data } = await unwrap(berth.GET("/v0/operations/{id}", { params: { path: { id } } }));
      return { data, text: operationText(data) };
    }
  }),
  command({
    name: "operations wait",
    summary: "wait for the end of an operation; exit code 1 if it fails",
    usage: "<id>",
    async run({ berth, args: [id = ""], signal }) {
      var _stack = [];
      try {
        const progress = __using(_stack, new Progress(`operation ${id}`));
        const data = await waitForOperation(berth, id, { onProgress: progress.operation, signal });
        progress[Symbol.dispose]();
        return { data, text: `${data.kind} ${stateText(data.state)}` };
      } catch (_) {
        var _error = _, _hasError = true;
      } finally {
        __callDispose(_stack, _error, _hasError);
      }
    }
  }),
  command({
    name: "operations cancel",
    summary: "cancel an operation",
    usage: "<id>",
    async run({ berth, args: [id = ""] }) {
      const { data } = await unwrap(berth.DELETE("/v0/operations/{id}", { params: { path: { id } } }));
      return { data, text: `${data.kind} ${stateText(data.state)}` };
    }
  })
];
var STYLES2 = {
  failed: "red",
  succeeded: "green",
  running: "yellow",
  queued: "yellow",
  canceled: "dim"
};
var stateText = (state) => paint(STYLES2[state], state);
function operationText(operation) {
  const { id, kind, target: target2, target_name, state, step, attempts, error, error_code } = operation;
  const { created_at, started_at, finished_at, next_attempt_at } = operation;
  const took = started_at && finished_at && Date.parse(finished_at) - Date.parse(started_at);
  return details({
    ...{ id, kind, on: target_name ? `${target_name} (${target2})` : target2, state: stateText(state) },
    step: step ?? void 0,
    error: error ? `${error}${error_code ? ` (${error_code})` : ""}` : void 0,
    attempts,
    began: ago(created_at),
    took: took ? span(took) : void 0,
    "next attempt": next_attempt_at ?? void 0
  });
}

// src/commands/pins.ts
init_src();
var filePinCommands = [
  command({
    name: "files pin",
    summary: "pin a CID to the public network, and wait until its content is here",
    usage: "<cid>",
    options: {
      name: { about: "its name", value: "name" },
      group: { about: "put it into this group", value: "id" },
      keyvalue: { about: "describe it: --keyvalue author=ada", value: "name=value", many: true },
      node: { about: "a node that has it: /ip4/\u2026/p2p/\u2026", value: "address", many: true },
      "no-wait": NO_WAIT
    },
    async run({ berth, args: [cid = ""], options, signal }) {
      var _stack = [];
      try {
        const { name, group, node } = options;
        const keyvalues = pairs(options.keyvalue);
        const started = await berth.POST("/v3/files/public/pin_by_cid", {
          params: { header: startNow() },
          body: {
            cid,
            ...name && { name },
            ...group && { group_id: group },
            ...keyvalues && { keyvalues },
            ...node.length > 0 && { host_nodes: node }
          }
        });
        const { data } = await unwrap(started);
        const operation = started.response.headers.get("operation-id");
        if (options["no-wait"])
          return { data: { ...data, operation }, text: `${data.id}  operation ${operation}` };
        const progress = __using(_stack, new Progress(`pin ${cid}`));
        if (operation) await waitForOperation(berth, operation, { onProgress: progress.operation, signal });
        return { data: { ...data, status: "pinned" }, text: `pinned ${cid}` };
      } catch (_) {
        var _error = _, _hasError = true;
      } finally {
        __callDispose(_stack, _error, _hasError);
      }
    }
  }),
  command({
    name: "pins ls",
    summary: "list pins that are pending or have failed",
    options: { limit: LIMIT },
    async run({ berth, options }) {
      const jobs = await collect(
        allItems((page) => berth.GET("/v3/files/public/pin_by_cid", { params: { query: page } })),
        count(options.limit, 100)
      );
      const rows = jobs.map(({ id, cid, name, status, date_queued }) => ({
        ...{ id, status, queued: ago(date_queued), name, cid }
      }));
      return { data: jobs, text: table(rows) };
    }
  }),
  command({
    name: "pins retry",
    summary: "retry a failed pin",
    usage: "<id>",
    async run({ berth, args: [id = ""] }) {
      const params = { path: { id }, header: startNow() };
      const { data } = await unwrap(berth.POST("/v0/files/public/pin_by_cid/{id}/retry", { params }));
      return { data, text: `${data.status} ${data.cid}` };
    }
  }),
  command({
    name: "pins rm",
    summary: "withdraw a pin that is pending or has failed",
    usage: "<id>",
    async run({ berth, args: [id = ""] }) {
      const params = { path: { id }, header: startNow() };
      await unwrap(berth.DELETE("/v3/files/public/pin_by_cid/{id}", { params }));
      return { data: { id }, text: `withdrew ${id}` };
    }
  })
];

// src/commands/profiles.ts
init_src();

// src/browser-sign-in.ts
init_src();
import { createHash, randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as delay2 } from "node:timers/promises";
init_errors2();
var ASK_MS = 2e3;
var LIMIT_MS = 9e5;
async function signInByBrowser(url, signal) {
  const verifier = randomBytes(32).toString("base64url");
  const challenge = createHash("sha256").update(verifier).digest("base64url");
  const page = `${url}/dashboard/program?${new URLSearchParams({ challenge, name: hostname() })}`;
  const code = paint("bold", signInCode(challenge), process.stderr);
  process.stderr.write(`Allow the sign-in on this page, if it shows the code ${code}:

  ${page}

`);
  if (!process.env.SSH_CONNECTION) await openInBrowser(page);
  const berth = createClient2({ url });
  const deadline = Date.now() + LIMIT_MS;
  while (Date.now() < deadline) {
    const answer = await berth.POST("/v0/login/program", { body: { verifier }, signal });
    if (answer.response.status !== 404) return (await unwrap(answer)).data.token;
    await delay2(ASK_MS, void 0, { signal });
  }
  throw new AdvisedError(
    "nobody has allowed the sign-in",
    "run it again, or use an API key: --key",
    EXIT.signIn
  );
}

// src/commands/profiles.ts
init_errors2();

// src/profiles.ts
init_client();
init_errors2();
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join as join2 } from "node:path";
var LOCAL = "http://localhost:3000";
function profilesPath(env = process.env) {
  const fallback = process.platform === "win32" ? env.APPDATA : void 0;
  const config = env.XDG_CONFIG_HOME || fallback || join2(homedir(), ".config");
  return join2(config, "berth", "profiles.json");
}
function readProfiles(path = profilesPath()) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return { profiles: {} };
    throw new AdvisedError(
      `${path}: ${error.message}`,
      "fix the file, or remove it and sign in again"
    );
  }
}
function writeProfiles(profiles, path = profilesPath()) {
  mkdirSync(dirname(path), { recursive: true, mode: 448 });
  const part = `${path}.${process.pid}`;
  writeFileSync(part, `${JSON.stringify(profiles, null, 2)}
`, { mode: 384 });
  chmodSync(part, 384);
  renameSync(part, path);
}
function chooseTarget(profile, env = process.env, read3 = readProfiles) {
  const { BERTH_URL, BERTH_KEY, BERTH_PROFILE } = env;
  if (!profile && BERTH_KEY) return { url: trim(BERTH_URL || LOCAL), key: BERTH_KEY };
  const { current, profiles } = read3();
  if (!profile && BERTH_URL) {
    const url = trim(BERTH_URL);
    const known = Object.values(profiles).find((one) => one.url === url);
    if (known) return known;
    throw new AdvisedError(`there is no key for ${url}`, `berth login ${url}, or set BERTH_KEY`, EXIT.signIn);
  }
  const name = profile ?? (BERTH_PROFILE || current);
  const chosen = name === void 0 ? void 0 : profiles[name];
  if (chosen) return chosen;
  if (name !== void 0)
    throw new AdvisedError(`there is no profile ${name}`, "berth profiles ls lists them", EXIT.signIn);
  throw new AdvisedError(
    "you are not signed in to a Berth",
    "berth login <url>, or set BERTH_URL and BERTH_KEY",
    EXIT.signIn
  );
}
function trim(url) {
  const text5 = /^https?:\/\//.test(url) ? url : `${/^(localhost|127\.|\[::1)/.test(url) ? "http" : "https"}://${url}`;
  if (!URL.canParse(text5))
    throw new AdvisedError(`${url} is not a URL`, "write it like https://berth.example.org", EXIT.usage);
  return trimSlashes(text5);
}

// src/commands/profiles.ts
var profileCommands = [
  command({
    name: "login",
    summary: "sign in to a Berth, in the browser or with an API key",
    usage: "<url>",
    options: {
      key: { about: "ask for an API key instead of opening the browser" },
      name: { about: "name of the profile; by default the host", value: "name" }
    },
    more: `You allow the sign-in in the dashboard, in a browser on any machine. Without a terminal, an API key
is read from stdin: create one with \`npx berth keys create\` where Berth runs, or in the dashboard,
under Operate, Keys. The key is stored in a file that only you can read.

  berth login https://berth.example.org
  pass show berth | berth login https://berth.example.org --name work`,
    async run({ args, options, profile: asked, signal }) {
      const url = trim(args[0] ?? "");
      const isInBrowser = process.stdin.isTTY && !options.key && await hasDashboard(url);
      const key = isInBrowser ? await signInByBrowser(url, signal) : await readSecret(`API key for ${url}: `);
      const { data: me } = await unwrap(createClient2({ url, key }).GET("/v0/me")).catch((error) => {
        if (error.status !== 401) throw error;
        throw new AdvisedError(
          `${url} does not accept this key`,
          "is it whole, and not revoked?",
          EXIT.signIn
        );
      });
      const name = options.name ?? asked ?? new URL(url).host;
      const { profiles } = readProfiles();
      writeProfiles({ current: name, profiles: { ...profiles, [name]: { url, key } } });
      const data = { profile: name, url, user: me.user.name, workspace: me.workspace.name };
      return { data, text: `signed in as ${me.user.name}, workspace ${me.workspace.name} (profile ${name})` };
    }
  }),
  command({
    name: "logout",
    summary: "forget the key of a profile; it stays valid until it is revoked",
    usage: "[profile]",
    async run({ args, profile }) {
      const { current, profiles } = readProfiles();
      const name = args[0] ?? profile ?? current ?? "";
      if (!profiles[name]) throw unknownProfile(name);
      const { [name]: _, ...rest } = profiles;
      const next = current === name ? Object.keys(rest)[0] : current;
      writeProfiles({ current: next, profiles: rest });
      return { data: { removed: name, current: next ?? null }, text: `removed profile ${name}` };
    }
  }),
  command({
    name: "whoami",
    summary: "show the Berth, user, workspace and rights of the key",
    async run({ berth, target: target2 }) {
      const { data } = await unwrap(berth.GET("/v0/me"));
      const { user, workspace, role, scopes, plan } = data;
      const fields = {
        url: target2.url,
        user: user.name,
        workspace: workspace.name,
        role,
        scopes,
        plan: plan.name
      };
      return { data: { url: target2.url, ...data }, text: details(fields) };
    }
  }),
  command({
    name: "profiles ls",
    summary: "list the Berths that you are signed in to",
    async run() {
      const { current, profiles } = readProfiles();
      const rows = Object.entries(profiles).map(([name, { url }]) => ({
        name,
        url,
        current: name === current
      }));
      const shown = rows.map(({ current: current2, ...row }) => ({ "": current2 ? "*" : " ", ...row }));
      return { data: rows, text: table(shown, `none; ${profilesPath()} would have them`) };
    }
  }),
  command({
    name: "profiles use",
    summary: "make a profile the current one",
    usage: "<profile>",
    async run({ args: [name = ""] }) {
      const all = readProfiles();
      if (!all.profiles[name]) throw unknownProfile(name);
      writeProfiles({ ...all, current: name });
      return { data: { current: name }, text: `${name} is the current profile` };
    }
  })
];
var hasDashboard = async (url) => (await unwrap(createClient2({ url }).GET("/v0/login"))).data.program;
var unknownProfile = (name) => new AdvisedError(`there is no profile ${name}`, "berth profiles ls lists them", EXIT.missing);

// src/commands/snapshots.ts
init_src();
var snapshotCommands = [
  command({
    name: "agents snapshots ls",
    summary: "list the snapshots of an agent, newest first",
    usage: "<agent>",
    options: { limit: LIMIT },
    async run({ berth, args, options }) {
      const path = { agentId: await agentIdOf(berth, args[0]) };
      const snapshots = await collect(
        allItems((page) => berth.GET("/v0/agents/{agentId}/snapshots", { params: { path, query: page } })),
        count(options.limit, 100)
      );
      const rows = snapshots.map(({ snapshotCid, changeSummary, createdAt }) => ({
        cid: snapshotCid,
        taken: ago(createdAt),
        changes: changeSummary
      }));
      return { data: snapshots, text: table(rows) };
    }
  }),
  command({
    name: "agents snapshots take",
    summary: "save an agent\u2019s workspace now",
    usage: "<agent>",
    async run({ berth, args, signal }) {
      var _stack = [];
      try {
        const path = { agentId: await agentIdOf(berth, args[0]) };
        const started = await berth.POST("/v0/agents/{agentId}/snapshots/sync", {
          params: { path, header: startNow() }
        });
        const progress = __using(_stack, new Progress(`saving ${path.agentId}`));
        if (started.response.status === 202)
          await waitForOperation(berth, started, { onProgress: progress.operation, signal });
        await unwrap(started);
        const { agent } = await unwrap(berth.GET("/v0/agents/{agentId}", { params: { path } }));
        return {
          data: { snapshotCid: agent.snapshotCid, lastSync: agent.lastSync },
          text: agent.snapshotCid ?? ""
        };
      } catch (_) {
        var _error = _, _hasError = true;
      } finally {
        __callDispose(_stack, _error, _hasError);
      }
    }
  }),
  command({
    name: "agents snapshots diff",
    summary: "compare two snapshots of an agent",
    usage: "<agent> <from> <to>",
    async run({ berth, args: [named, from = "", to = ""] }) {
      const params = { path: { agentId: await agentIdOf(berth, named) }, query: { from, to } };
      const data = await unwrap(berth.GET("/v0/agents/{agentId}/snapshots/diff", { params }));
      return { data, text: harmlessLines(data.diff).trimEnd().split("\n").map(diffLine).join("\n") };
    }
  }),
  command({
    name: "agents snapshots reset",
    summary: "go back to a snapshot; the workspace is saved first",
    usage: "<agent> <cid>",
    async run({ berth, args: [named, snapshotCid = ""], signal }) {
      var _stack = [];
      try {
        const agentId = await agentIdOf(berth, named);
        const started = await berth.POST("/v0/agents/{agentId}/snapshots/reset", {
          params: { path: { agentId }, header: startNow() },
          body: { snapshotCid }
        });
        const data = await unwrap(started);
        const progress = __using(_stack, new Progress(`resetting ${agentId}`));
        if (started.response.status === 202)
          await waitForOperation(berth, started, { onProgress: progress.operation, signal });
        return { data, text: `${agentId} is back at ${snapshotCid}` };
      } catch (_) {
        var _error = _, _hasError = true;
      } finally {
        __callDispose(_stack, _error, _hasError);
      }
    }
  })
];
function diffLine(line) {
  if (/^(\+\+\+|---|diff )/.test(line)) return paint("bold", line);
  if (line.startsWith("@@")) return paint("cyan", line);
  if (line.startsWith("+")) return paint("green", line);
  return line.startsWith("-") ? paint("red", line) : line;
}

// src/commands/spending.ts
init_src();
init_errors2();
var BY = ["day", "model", "agent", "session"];
var spendingCommands = [
  command({
    name: "spending",
    summary: "show what models cost, of the workspace or of one agent",
    usage: "[agent]",
    options: {
      by: { about: "rows by day, model, agent, session, or several: agent,model", value: "list" },
      from: { about: "the first day; default the first of this month", value: "date" },
      to: { about: "the last day", value: "date" }
    },
    async run({ berth, args, options: { by, from, to } }) {
      const groupBy = readBy(by ?? (args.length > 0 ? "model" : "agent,model"));
      const agentId = args[0] === void 0 ? void 0 : await agentIdOf(berth, args[0]);
      const query = {
        groupBy,
        limit: 1e3,
        ...from && { from },
        ...to && { to },
        ...agentId && { agentId }
      };
      const querySerializer = { array: { style: "form", explode: false } };
      const body = await unwrap(berth.GET("/v0/spending", { params: { query }, querySerializer }));
      const { data } = body;
      const rows = data.rows.map((row) => ({
        ...Object.fromEntries(groupBy.map((name) => [name, row[name === "agent" ? "agentId" : name]])),
        ...amounts(row)
      }));
      const first = Object.keys(rows[0] ?? {})[0] ?? "total";
      return {
        data,
        text: table([...rows, { [first]: "total", ...amounts(data.total) }].map(inOrder(groupBy)))
      };
    }
  })
];
function readBy(text5) {
  const names = text5.split(",").map((name) => name.trim());
  for (const name of names)
    if (!BY.includes(name)) throw new UsageError(`--by: ${name} is none of ${BY.join(", ")}`);
  return names;
}
var amounts = ({ usd, requests, errors, tokens }) => ({
  usd,
  requests,
  errors,
  "tokens in": tokens.input,
  out: tokens.output
});
var inOrder = (groupBy) => (row) => ({
  ...Object.fromEntries(groupBy.map((name) => [name, row[name] ?? null])),
  ...row
});

// src/commands/transfer.ts
init_src();
import { createWriteStream as createWriteStream2 } from "node:fs";
import { mkdir } from "node:fs/promises";
import { basename as basename3, dirname as dirname2, join as join3 } from "node:path";
import { Transform } from "node:stream";
import { pipeline as pipeline2 } from "node:stream/promises";
init_errors2();
var transferCommands = [
  command({
    name: "files add",
    summary: "upload files and folders; private, unless --public",
    usage: "<path...>",
    options: {
      public: { about: "on the public network, where anyone may read it" },
      name: { about: "its name; by default that of the file or folder", value: "name" },
      group: { about: "put it into this group", value: "id" },
      keyvalue: { about: "describe it: --keyvalue author=ada", value: "name=value", many: true },
      hidden: { about: "include hidden files of a folder, such as .git and .env" }
    },
    more: `\`-\` reads stdin, with --name. In a terminal it also prints a link.

  berth files add --public site/
  tar c notes | berth files add - --name notes.tar`,
    async run({ berth, target: target2, args, options, json, signal }) {
      if (options.name && args.length > 1) throw new UsageError("--name is for one file or folder");
      const network = options.public ? "public" : "private";
      const settings = { network, groupId: options.group, keyvalues: pairs(options.keyvalue), signal };
      const added = [];
      for (const path of args) {
        const local = await read2(path, options);
        if (local.hidden > 0)
          console.error(
            paint("dim", `left out ${local.hidden} hidden files (--hidden includes them)`, process.stderr)
          );
        const file = { ...await send2(berth, local, options.name ?? local.name, settings), network };
        const url = await linkTo(berth, target2.url, file).catch(() => void 0);
        added.push({ ...file, ...url && { url } });
        if (!json) console.log(added.length === 1 && args.length === 1 ? file.cid : `${file.cid}  ${path}`);
        if (!json && url && process.stdout.isTTY) console.log(paint("dim", url));
      }
      return { data: added, text: "" };
    }
  }),
  command({
    name: "files get",
    summary: "download a file or folder, or print a file with `-`",
    usage: "<id-or-cid> [to]",
    async run({ berth, target: target2, args: [named, to], json, signal }) {
      var _stack = [];
      try {
        const file = await findFile(berth, named);
        const place = to ?? basename3(file.name || file.cid);
        const progress = __using(_stack, new Progress(place));
        const fetchTo = async (path, at) => {
          const body = await open(await linkTo(berth, target2.url, file, { path }), signal);
          const total = Number(body.headers["content-length"]) || file.size;
          let received = 0;
          const counted = new Transform({
            transform(chunk, _2, done) {
              received += chunk.length;
              progress.show(`${at}  ${bytes(received)} of ${bytes(total)}`, received / Math.max(total, 1));
              done(null, chunk);
            }
          });
          if (at === "-") await pipeline2(body, counted, process.stdout, { end: false });
          else await pipeline2(body, counted, createWriteStream2(at));
        };
        const isFolder = file.mime_type === "directory";
        if (isFolder && place === "-") throw new UsageError("a folder cannot be printed");
        if (isFolder)
          await eachFile(berth, file, "", (path) => toFolder(join3(place, path), (at) => fetchTo(path, at)));
        else await fetchTo("", place);
        return place === "-" ? void 0 : { data: { ...file, to: place }, text: json ? "" : place };
      } catch (_) {
        var _error = _, _hasError = true;
      } finally {
        __callDispose(_stack, _error, _hasError);
      }
    }
  })
];
async function read2(path, { name, hidden }) {
  if (path !== "-") return openLocal(path, { withHidden: hidden });
  if (!name) throw new UsageError("stdin needs --name");
  const content = await stdinAsBlob();
  return { name, content, bytes: content.size, hidden: 0 };
}
async function send2(berth, local, name, settings) {
  var _stack = [];
  try {
    const progress = __using(_stack, new Progress(`${name}  ${bytes(local.bytes)}`));
    if (local.content instanceof Blob)
      return await upload(berth, local.content, { ...settings, name, onProgress: progress.sent(name) });
    if (local.content.length === 0)
      throw new AdvisedError(`${name} has no files`, "--hidden includes hidden ones");
    return await uploadFolder(berth, name, local.content, settings);
  } catch (_) {
    var _error = _, _hasError = true;
  } finally {
    __callDispose(_stack, _error, _hasError);
  }
}
async function eachFile(berth, file, path, act) {
  const entries = allItems(
    (page) => berth.GET("/v0/files/{network}/{id}/entries", {
      params: { path: { network: file.network, id: file.id }, query: { path, ...page } }
    })
  );
  for await (const { name, type } of entries) {
    if (name === ".." || name === "." || /[/\\\0]/.test(name))
      throw new Error(`the folder has a file named ${name}`);
    const at = path ? `${path}/${name}` : name;
    if (type === "directory") await eachFile(berth, file, at, act);
    else await act(at);
  }
}
async function toFolder(at, write) {
  await mkdir(dirname2(at), { recursive: true });
  await write(at);
}

// src/commands/webhooks.ts
init_src();
import { createHmac, randomBytes as randomBytes2 } from "node:crypto";
init_errors2();
var TARGET_MS = 15e3;
var TYPE = { about: "only this type, or a group of types: pin.*", value: "type", many: true };
var webhookCommands = [
  command({
    name: "webhooks ls",
    summary: "list webhooks",
    options: { limit: LIMIT },
    async run({ berth, options }) {
      const webhooks = await collect(
        allItems((page) => berth.GET("/v0/webhooks", { params: { query: page } })),
        count(options.limit, 100)
      );
      const rows = webhooks.map(({ id, url, events, enabled, disabledReason, createdAt }) => ({
        ...{
          id,
          url,
          events,
          state: enabled ? "enabled" : `disabled: ${disabledReason}`,
          created: ago(createdAt)
        }
      }));
      return { data: webhooks, text: table(rows) };
    }
  }),
  command({
    name: "webhooks create",
    summary: "have events sent to a URL; prints the secret, once",
    usage: "<url>",
    options: { type: TYPE },
    async run({ berth, args: [url = ""], options }) {
      const events = options.type.length > 0 ? options.type : ["*"];
      const { data } = await unwrap(berth.POST("/v0/webhooks", { body: { url, events } }));
      return { data, text: `${data.id}
${data.secret}` };
    }
  }),
  command({
    name: "webhooks test",
    summary: "send a test event to a webhook",
    usage: "<id>",
    async run({ berth, args: [id = ""] }) {
      const { data } = await unwrap(berth.POST("/v0/webhooks/{id}/test", { params: { path: { id } } }));
      return { data, text: `${data.state} ${data.id}` };
    }
  }),
  command({
    name: "webhooks rm",
    summary: "delete a webhook",
    usage: "<id>",
    async run({ berth, args: [id = ""] }) {
      await unwrap(berth.DELETE("/v0/webhooks/{id}", { params: { path: { id } } }));
      return { data: { id }, text: `deleted ${id}` };
    }
  }),
  command({
    name: "webhooks listen",
    summary: "send the workspace\u2019s events to a program on this machine, as a webhook would",
    usage: "<url>",
    options: { type: TYPE },
    more: `It follows the event stream, so it needs neither a webhook nor a public address, and any key
that may see the events. Requests are signed (Standard Webhooks) with BERTH_WEBHOOK_SECRET,
or else with a new secret, which it prints. A failed request is not repeated.

  berth webhooks listen http://localhost:4000/hook --type 'pin.*'`,
    async run({ berth, args: [url = ""], options, json, signal }) {
      if (!URL.canParse(url)) throw new UsageError(`${url} is not a URL like http://localhost:4000/hook`);
      const given = process.env.BERTH_WEBHOOK_SECRET;
      const secret = given || `whsec_${randomBytes2(32).toString("base64")}`;
      const told = (text5) => console.error(paint("dim", text5, process.stderr));
      const onConnection = (isOpen) => told(isOpen ? `sending events to ${url}` : "the connection was lost; trying again");
      if (!given) told(`signed with ${secret}`);
      for await (const { event, body } of followEvents(berth, {
        types: options.type,
        signal,
        onConnection
      })) {
        const result = await deliver(url, `msg_${event.id}`, body, secret);
        if (json) console.log(JSON.stringify({ event, ...result }));
        else console.log(`${eventText(event)} ${resultText(result)}`);
      }
    }
  })
];
async function deliver(url, id, body, secret) {
  const began = performance.now();
  const timestamp = Math.floor(Date.now() / 1e3);
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  const headers = {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": `${timestamp}`,
    "webhook-signature": `v1,${signature}`
  };
  const took = () => Math.round(performance.now() - began);
  try {
    const response = await fetch(url, {
      ...{ method: "POST", body, headers, redirect: "manual" },
      signal: AbortSignal.timeout(TARGET_MS)
    });
    await response.body?.cancel();
    return { status: response.status, error: null, ms: took() };
  } catch (error) {
    const { cause, message } = error;
    return { status: null, error: cause?.code ?? message, ms: took() };
  }
}
function resultText({ status, error, ms }) {
  const isGood = status !== null && status >= 200 && status < 300;
  return paint(isGood ? "green" : "red", harmless(`\u2192 ${status ?? error} in ${ms} ms`));
}

// src/commands.ts
var COMMANDS = [
  ...profileCommands,
  ...agentCommands,
  ...chatCommands,
  ...consoleCommands,
  ...agentFileCommands,
  ...agentTaskCommands,
  ...agentSecretCommands,
  ...snapshotCommands,
  ...fileCommands,
  ...transferCommands,
  ...filePinCommands,
  ...groupCommands,
  ...operationCommands,
  ...eventCommands,
  ...webhookCommands,
  ...spendingCommands,
  ...apiCommands,
  ...completionCommands
];

// src/completion.ts
init_src();

// src/families.ts
var FAMILIES = {
  agents: "AI agents: create them, talk to them, run commands in them",
  "agents files": "files of an agent",
  "agents tasks": "work that an agent does on a schedule",
  "agents secrets": "environment variables of an agent",
  "agents snapshots": "the history of an agent\u2019s workspace",
  files: "files on IPFS: add, pin, get, share",
  pins: "requests to pin a CID",
  groups: "groups of files",
  operations: "long work: wait for it, cancel it",
  webhooks: "webhooks, and their events on this machine",
  profiles: "the Berths you are signed in to"
};

// src/line.ts
function splitLine(line) {
  let lead = 0;
  while (/^(--json|--profile=.*|--profile|-p)$/.test(line[lead] ?? ""))
    lead += ["--profile", "-p"].includes(line[lead] ?? "") ? 2 : 1;
  const rest = line.slice(lead);
  const command2 = COMMANDS.find(({ name }) => `${rest.join(" ")} `.startsWith(`${name} `));
  const after = rest.slice(command2?.name.split(" ").length ?? 0);
  const option = after.findIndex((word) => word.startsWith("-"));
  return {
    command: command2,
    names: option < 0 ? after : after.slice(0, option),
    words: [...line.slice(0, lead), ...after]
  };
}

// ../../bin/operator-commands.json
var operator_commands_default = {
  keys: "API keys, the secrets key, and tokens of agents",
  workspaces: "workspaces and their plans",
  users: "users of a workspace",
  "login-link": "print a link that signs in to the dashboard",
  feedback: "feedback from users and agents",
  audit: "who did what",
  engines: "versions of OpenClaw that agents can run",
  backup: "copy all of Berth while it runs",
  restore: "restore a backup",
  storage: "read all content, and report what is missing or damaged",
  gc: "free the space of unreferenced content",
  migrate: "bring the database schema up to date",
  health: "check the process on this machine",
  doctor: "check each component and advise on problems"
};

// src/operator.ts
var OPERATOR = operator_commands_default;

// src/completion.ts
async function complete(words) {
  const typed = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  return (await candidates(before, typed)).filter(({ word }) => word.startsWith(typed));
}
async function candidates(before, typed) {
  const { command: command2, names, words } = splitLine(before);
  if (!command2) return nextNames(names);
  const options = { ...command2.options, ...GLOBAL };
  const last = before.at(-1) ?? "";
  const asked = Object.entries(options).find(
    ([name2, { short }]) => last === `--${name2}` || last === `-${short}`
  );
  const [name, option] = asked ?? [];
  if (option?.choices) return option.choices.map((word) => ({ word, about: "" }));
  if (name === "profile") return profileNames();
  if (option?.value) return [];
  if (typed.startsWith("-"))
    return Object.entries(options).map(([name2, { about }]) => ({ word: `--${name2}`, about }));
  const { args, profile } = readLoosely(command2, words);
  return argumentChoices(command2, args.length, profile);
}
function nextNames(names) {
  const prefix = names.length === 0 ? "" : `${names.join(" ")} `;
  const found = /* @__PURE__ */ new Map();
  for (const { name, summary } of COMMANDS) {
    if (!name.startsWith(prefix)) continue;
    const [word = ""] = name.slice(prefix.length).split(" ");
    if (!found.has(word)) found.set(word, name === prefix + word ? summary : FAMILIES[prefix + word] ?? "");
  }
  if (names.length === 0) for (const [word, about] of Object.entries(OPERATOR)) found.set(word, about);
  return Array.from(found, ([word, about]) => ({ word, about }));
}
async function argumentChoices(command2, position, profile) {
  const argument = argumentsOf(command2.usage)[position];
  if (argument?.name === "agent") return agentNames(profile);
  if (argument?.name === "profile") return profileNames();
  if (argument?.name === "shell") return SHELLS.map((word) => ({ word, about: "" }));
  return [];
}
var AGENTS_MS = 1500;
async function agentNames(profile) {
  try {
    const signal = AbortSignal.timeout(AGENTS_MS);
    const berth = createClient2({ ...chooseTarget(profile), retries: 0 });
    const { agents } = await unwrap(berth.GET("/v0/agents", { signal }));
    return agents.map(
      ({ agentId, name, status }) => /^[\w.-]+$/.test(name) ? { word: name, about: status } : { word: agentId, about: harmless(name) }
    );
  } catch {
    return [];
  }
}
var profileNames = () => Object.entries(readProfiles().profiles).map(([word, { url }]) => ({ word, about: url }));

// src/main.ts
init_errors2();

// src/help.ts
function families() {
  const found = /* @__PURE__ */ new Map();
  for (const command2 of COMMANDS) {
    const [first = ""] = command2.name.split(" ");
    found.set(first, [...found.get(first) ?? [], command2]);
  }
  return found;
}
function overview() {
  const users = Array.from(families(), ([first, commands]) => [
    first,
    FAMILIES[first] ?? commands[0]?.summary ?? ""
  ]);
  return [
    `Usage: ${paint("bold", "berth")} <command>`,
    section("Your files and agents, on any Berth", users),
    section("For operators, where Berth runs", Object.entries(OPERATOR)),
    `${paint("bold", "berth <command> --help")} explains a command.`
  ].join("\n\n");
}
function familyHelp(words) {
  const prefix = `${words.join(" ")} `;
  const commands = COMMANDS.filter(({ name }) => `${name} `.startsWith(prefix));
  const rows = commands.map(({ name, usage, summary }) => [
    `${name} ${usage}`.trim(),
    summary
  ]);
  return [`Usage: ${paint("bold", `berth ${words.join(" ")}`)} <command>`, section("Commands", rows)].join(
    "\n\n"
  );
}
function commandHelp({ name, usage, summary, options, more }) {
  const parts = [
    `Usage: ${paint("bold", `berth ${name}`)}${usage && ` ${usage}`} [options]`,
    `${summary[0]?.toUpperCase()}${summary.slice(1)}.`,
    section("Options", [...optionRows(options), ...optionRows(GLOBAL)])
  ];
  if (more) parts.splice(2, 0, more);
  return parts.join("\n\n");
}
var optionRows = (options) => Object.entries(options).map(([name, { about, value, short, choices }]) => [
  `${short ? `-${short}, ` : "    "}--${name}${value ? ` <${value}>` : ""}`,
  choices ? `${about}: ${choices.join(", ")}` : about
]);
function section(title, rows) {
  const width = Math.max(...rows.map(([name]) => widthOf(name)));
  return [paint("bold", title), ...rows.map(([name, text5]) => `  ${padEnd(name, width)}  ${text5}`)].join("\n");
}

// src/main.ts
var interrupt = new AbortController();
var target;
async function main(words) {
  if (words[0] === "__complete") {
    const found = await complete(words.slice(words[1] === "--" ? 2 : 1));
    for (const { word, about } of found) console.log(about ? `${word}	${about}` : word);
    return;
  }
  if (words[0] === "--version" || words[0] === "-V") return console.log(package_default.version);
  if (words.length === 0 || words[0] === "--help" || words[0] === "-h" || words[0] === "help")
    return console.log(words.length > 1 && words[0] === "help" ? helpFor(words.slice(1)) : overview());
  const { command: command2, names, words: given } = splitLine(words);
  if (!command2) {
    if (COMMANDS.some(({ name }) => name.startsWith(`${names.join(" ")} `))) {
      console.log(familyHelp(names));
      if (!words.includes("--help") && !words.includes("-h")) process.exitCode = EXIT.usage;
      return;
    }
    return fail({ message: unknown(names), exit: EXIT.usage }, words);
  }
  process.once("SIGINT", () => {
    if (process.stderr.isTTY) process.stderr.write("\n");
    interrupt.abort();
    process.exitCode = EXIT.interrupted;
  });
  try {
    await run(command2, given);
  } catch (error) {
    if (interrupt.signal.aborted) return;
    const explained = explain(error, target?.url);
    if (error instanceof UsageError) explained.advice = `berth ${command2.name} --help`;
    fail(explained, words);
  }
}
async function run(command2, words) {
  const { args, options } = parse2(command2, words);
  if (options.help) return console.log(commandHelp(command2));
  const profile = options.profile;
  const find2 = () => {
    target ??= chooseTarget(profile);
    return target;
  };
  let berth;
  const call = {
    ...{ args, options, profile, json: Boolean(options.json), signal: interrupt.signal },
    get target() {
      return find2();
    },
    get berth() {
      berth ??= createClient2({ ...find2(), headers: { "user-agent": `berth/${package_default.version}` } });
      return berth;
    }
  };
  const shown = await command2.run(call);
  if (shown) print(shown, call.json);
}
function print({ data, text: text5 }, json) {
  const out = json ? JSON.stringify(data, null, 2) : text5;
  if (out !== "") console.log(out);
}
function helpFor(words) {
  const { command: command2 } = splitLine(words);
  return command2 ? commandHelp(command2) : familyHelp(words);
}
function unknown(names) {
  const said = names.slice(0, 2).join(" ");
  if (names[0] !== void 0 && Object.hasOwn(OPERATOR, names[0]))
    return `berth ${names[0]} is for operators: run it where Berth is installed, or with npx berth in its folder`;
  const near = COMMANDS.map(({ name }) => name).find(
    (name) => isNear(name, said) || isNear(name, names[0] ?? "")
  );
  return `unknown command '${said}'${near ? `: did you mean ${near}?` : ""}`;
}
function isNear(a, b) {
  if (Math.abs(a.length - b.length) > 1 || a === b) return a === b;
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return a.slice(at + 1) === b.slice(at + 1) || a.slice(at) === b.slice(at + 1) || a.slice(at + 1) === b.slice(at);
}
function fail({ message, advice, exit }, words) {
  if (words.includes("--json")) console.error(JSON.stringify({ error: message, advice, exit }));
  else {
    console.error(`${paint("red", "error:", process.stderr)} ${message}`);
    if (advice) console.error(paint("dim", `  ${advice}`, process.stderr));
  }
  process.exitCode = exit;
}
for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error) => {
    if (error.code !== "EPIPE") throw error;
    process.exit();
  });
await main(process.argv.slice(2));
export {
  main
};
