;; The checksum of zlib's streams (RFC 1950) over memory: 16 bytes at a time, and a remainder of both sums before either
;; could exceed 32 bits. adler32.ts has it assembled by wat2wasm of wabt.
(module
  (memory (export "memory") 33)
  (func (export "adler32") (param $at i32) (param $length i32) (param $sum i32) (result i32)
    (local $low i32) (local $high i32) (local $steps i32)
    (local $bytes v128) (local $sums v128) (local $before v128) (local $weighted v128) (local $weights v128)
    (local.set $weights (v128.const i8x16 16 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1))
    (local.set $low (i32.and (local.get $sum) (i32.const 65535)))
    (local.set $high (i32.shr_u (local.get $sum) (i32.const 16)))
    (loop $blocks
      (if (i32.ge_u (local.get $length) (i32.const 16))
        (then
          (local.set $steps (i32.shr_u (local.get $length) (i32.const 4)))
          (if (i32.gt_u (local.get $steps) (i32.const 346)) (then (local.set $steps (i32.const 346))))
          (local.set $length (i32.sub (local.get $length) (i32.shl (local.get $steps) (i32.const 4))))
          (local.set $high
            (i32.add (local.get $high) (i32.mul (local.get $low) (i32.shl (local.get $steps) (i32.const 4)))))
          (local.set $sums (v128.const i32x4 0 0 0 0))
          (local.set $before (v128.const i32x4 0 0 0 0))
          (local.set $weighted (v128.const i32x4 0 0 0 0))
          (loop $step
            (local.set $bytes (v128.load align=1 (local.get $at)))
            (local.set $before (i32x4.add (local.get $before) (local.get $sums)))
            (local.set $sums
              (i32x4.add (local.get $sums)
                (i32x4.extadd_pairwise_i16x8_u (i16x8.extadd_pairwise_i8x16_u (local.get $bytes)))))
            (local.set $weighted
              (i32x4.add (local.get $weighted)
                (i32x4.extadd_pairwise_i16x8_u
                  (i16x8.add
                    (i16x8.extmul_low_i8x16_u (local.get $bytes) (local.get $weights))
                    (i16x8.extmul_high_i8x16_u (local.get $bytes) (local.get $weights))))))
            (local.set $at (i32.add (local.get $at) (i32.const 16)))
            (br_if $step (local.tee $steps (i32.sub (local.get $steps) (i32.const 1)))))
          (local.set $weighted
            (i32x4.add (local.get $weighted) (i32x4.shl (local.get $before) (i32.const 4))))
          (local.set $low
            (i32.rem_u
              (i32.add (local.get $low)
                (i32.add
                  (i32.add (i32x4.extract_lane 0 (local.get $sums)) (i32x4.extract_lane 1 (local.get $sums)))
                  (i32.add (i32x4.extract_lane 2 (local.get $sums)) (i32x4.extract_lane 3 (local.get $sums)))))
              (i32.const 65521)))
          (local.set $high
            (i32.rem_u
              (i32.add (local.get $high)
                (i32.add
                  (i32.add (i32x4.extract_lane 0 (local.get $weighted)) (i32x4.extract_lane 1 (local.get $weighted)))
                  (i32.add (i32x4.extract_lane 2 (local.get $weighted)) (i32x4.extract_lane 3 (local.get $weighted)))))
              (i32.const 65521)))
          (br $blocks))))
    (loop $rest
      (if (local.get $length)
        (then
          (local.set $low (i32.add (local.get $low) (i32.load8_u (local.get $at))))
          (local.set $high (i32.add (local.get $high) (local.get $low)))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (local.set $length (i32.sub (local.get $length) (i32.const 1)))
          (br $rest))))
    (i32.or
      (i32.shl (i32.rem_u (local.get $high) (i32.const 65521)) (i32.const 16))
      (i32.rem_u (local.get $low) (i32.const 65521)))))
